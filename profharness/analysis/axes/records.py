"""What a scan over several axes says, as typed records. Nothing is computed here."""

from __future__ import annotations

import msgspec

from profharness.analysis.curves.records import BatchCurve, Knee, Recommended, StepChange
from profharness.findings import Finding
from profharness.stats.estimate import Estimate

Value = int | float | str
Parameters = dict[str, Value]
"""The value of each axis, by what stands left of `=` in `--scan`."""


class AxisLevels(msgspec.Struct, frozen=True, kw_only=True):
    """One axis with its values, numbers in ascending order, texts as they were given."""

    name: str
    values: tuple[Value, ...]
    is_number: bool


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What one axis, or two in dependence of each other, are worth: `factor` on the throughput,
    1 or more, with its interval.

    Of one axis between `best` and `worst`, by its name. Of two, the ratio of `best` to `worst` of
    the first is larger by the factor where the second has its value of `best` than where it has
    that of `worst`. `proven`: the interval excludes 1. `levels` are the parts of each value of one
    axis as factors on the mean, in the order of its values.
    """

    axes: tuple[str, ...]
    factor: Estimate
    best: Parameters
    worst: Parameters
    proven: bool = False
    levels: tuple[float, ...] = ()


class PointRate(msgspec.Struct, frozen=True, kw_only=True):
    """A point by its values, with its rate and interval; `executions` that counted, whether it
    keeps what is required, and its named figures (means over the executions).
    """

    point: str
    parameters: Parameters
    throughput: float
    low: float | None = None
    high: float | None = None
    executions: int = 1
    kept: bool = True
    values: dict[str, float] = {}


class AxisCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A curve along one axis of numbers at one setting of the others (`key`): `levels` ascending.

    `limiter` is the kind of the verdict at `limiter_at` and `limiter_text` its sentence, empty
    where no point of the curve has one. `usl` and `jobs_per_device` belong to curves over clients,
    and are never there.
    """

    key: Parameters
    axis: str
    levels: tuple[float, ...]
    throughput: tuple[float, ...]
    throughput_sem: tuple[float | None, ...] = ()
    points: tuple[str, ...] = ()
    batch: BatchCurve | None = None
    usl: None = None
    knee: Knee | None = None
    jobs_per_device: None = None
    recommended: Recommended | None = None
    step: StepChange | None = None
    limiter: str = ""
    limiter_text: str = ""
    limiter_at: float | None = None
    findings: tuple[Finding, ...] = ()


class CapPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point under a power cap (W): its throughput, and from telemetry the mean power (W) and the
    energy per item (J).
    """

    cap_w: float
    point: str
    throughput: Estimate
    power_w: Estimate
    energy_per_item: Estimate


class CapCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The points along the power cap at one setting of the other axes (`key`), caps ascending.

    `at_w` is the cap that costs the share `cost` of the throughput at the highest one,
    `reference_w`, and `saves` the share of the energy per item that it saves (less than 0: takes
    more); `needs` says why there is none. `least_energy_w` is the cap of the point that takes the
    least energy per item.
    """

    key: Parameters
    points: tuple[CapPoint, ...]
    reference_w: float
    cost: float
    at_w: Estimate
    saves: Estimate
    needs: str = ""
    least_energy_w: float | None = None


class FrontPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that none is proven to beat in every figure at once. `certain`: none has as good
    values in all of them either.
    """

    point: str
    parameters: Parameters
    figures: dict[str, Estimate]
    certain: bool = True


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """The settings between which one has to choose, and by which `figures`: the throughput, of
    which more is better, and others, of which less is; `units` are theirs. The certain ones come
    first, each group by falling throughput.
    """

    figures: tuple[str, ...]
    units: dict[str, str] = {}
    points: tuple[FrontPoint, ...] = ()


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of a setting from what was measured elsewhere, with a 95 % interval."""

    parameters: Parameters
    throughput: Estimate


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What the other points predict for a measured one, with the interval of a measurement there
    by as many executions, and whether the measured throughput lies inside it.
    """

    point: str
    throughput: Estimate
    inside: bool


class AxesScan(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of it. `unit` is what a rate counts; `noise` the relative scatter of one execution,
    None with one repeat; `unmeasured` the points that failed.

    `left_out` predicts each point from the others, with the median relative error
    `left_out_error`; `expected` are settings of the grid without a rate, fastest first, of
    `settings_left` (settings that failed are none). `overlaps_best` are the points that are not
    proven worse than the best; `effects_need` says why there are no effects. `caps` are there with
    an axis power-cap. `design` is search where results chose the points. Of a server's settings
    there is a `front`, and `serve` is the command that serves the recommended one.
    """

    axes: tuple[AxisLevels, ...]
    unit: str
    design: str = "grid"
    repeats: int = 1
    requires: tuple[str, ...] = ()
    points: tuple[PointRate, ...] = ()
    best: str | None = None
    recommended: str | None = None
    overlaps_best: tuple[str, ...] = ()
    noise: float | None = None
    effects: tuple[Effect, ...] = ()
    effects_need: str = ""
    left_out_error: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    expected: tuple[Prediction, ...] = ()
    settings_left: int = 0
    curves: tuple[AxisCurve, ...] = ()
    unmeasured: tuple[str, ...] = ()
    caps: tuple[CapCurve, ...] = ()
    front: Front | None = None
    serve: str = ""
