"""Critical paths and forecasts as typed records; their JSON form is that of docs/json.md#metrics.
Nothing is computed here.
"""

from __future__ import annotations

import msgspec

KEPT_ROWS = 100
NO_CHANGE = "no change"


class PathPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one class of time holds of a path: `ns` of it in so many `segments`."""

    ns: int
    segments: int


class PathRow(msgspec.Struct, frozen=True, kw_only=True):
    """Segments of one class and name: a kernel, an operator, a call, a range or a Python frame.
    `operator` launched the work, where one did; `share` is that of the window. `process` is where
    it lies, on a path over several processes.
    """

    kind: str
    name: str
    operator: str = ""
    ns: int
    share: float
    segments: int
    process: str = ""


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """The path inside of one step, by class; the parts sum to `window_ns`."""

    step: str
    number: int | None
    start_ns: int
    window_ns: int
    segments: dict[str, int]


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would make of a window. `residual_ns` is what the rerun of no change misses
    the measured window by; `next_limit` is the class that then holds most of the path.

    `at_most_ns` is the time that the change takes from the measured path, which no forecast can
    gain more than; of graphs what is left of a window in which a capture reached all that one can
    reach, without waits what is left beside the device's own work.

    `forecast_ns` only says which change may be worth more: how far the change itself is from it was
    measured for too few to tell an interval. Reports show the bound alone, and their JSON has null.
    """

    change: str
    window_ns: int
    forecast_ns: int | None
    steps: int
    at_most_ns: int | None
    next_limit: str
    next_limit_share: float
    touched: int
    residual_ns: int

    @property
    def replayed_ns(self) -> int:
        """The window of the replay, or the measured one where it is not told."""
        return self.window_ns if self.forecast_ns is None else self.forecast_ns


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A change that cannot be forecast, and why."""

    change: str
    why: str


class StepForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A step as forecast, with its 95 % interval, and the median of what was measured (None where
    nothing was); `error` is the forecast over the measured one, less 1.
    """

    forecast_ns: float
    low_ns: float
    high_ns: float
    measured_ns: float | None = None
    measured_low_ns: float | None = None
    measured_high_ns: float | None = None
    error: float | None = None


class BatchForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A batch size as other sizes of its series of the scan tell it: as traced, and without the
    profiler (None without such trials). It `rests_on` two sizes; `inside` says that it lies between
    them.
    """

    size: int
    series: str = ""
    rests_on: tuple[int, int]
    inside: bool
    traced: StepForecast
    bare: StepForecast | None = None


class Meetings(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives that several processes have in common. `bound_ns` is how far the ends of nineteen
    of twenty lie apart on the clock that their common end gives; 0 on a shared clock.
    """

    calls: int
    shared_clock: bool
    bound_ns: int


class RankPath(msgspec.Struct, frozen=True, kw_only=True):
    """The critical path of one process. `segments` holds every class that occurs, largest first;
    they sum to `window_ns` exactly. `rows` are the `KEPT_ROWS` largest. Where the path goes on at
    other processes, `places` says how many ns of it lie on which; they sum to `window_ns`, too.
    """

    process: str
    point: str = ""
    rank: int | None = None
    window: str
    start_ns: int
    window_ns: int
    segments: dict[str, PathPart]
    rows: tuple[PathRow, ...]
    steps: tuple[PathStep, ...]
    what_if: tuple[Forecast, ...] = ()
    places: dict[str, int] = {}

    @property
    def step_ns(self) -> float | None:
        """The window by its steps; None where no steps are marked."""
        return self.window_ns / len(self.steps) if self.steps else None


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of all processes (and points) of a run or file; the parts sum over them.
    `batches` are the sizes of a scan, each forecast from the others; `refused` are changes that
    cannot be forecast; `meetings` tell of collectives of several processes, None without.
    """

    window_ns: int
    segments: dict[str, PathPart]
    processes: tuple[RankPath, ...]
    batches: tuple[BatchForecast, ...] = ()
    refused: tuple[Refusal, ...] = ()
    meetings: Meetings | None = None
