"""What telemetry concludes, as typed records; their JSON form is docs/json.md#summary."""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.stats.estimate import Figure


class TelemetryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One telemetry metric over the run: time-weighted mean, extremes, and a thinned series for the
    report's plot.

    `at_s` is seconds since the run's first sample, `span_ns` the time from the first to the last
    sample of the metric. `captured` is the mean over the window that the partition divides; None
    where fewer than `CAPTURED_SAMPLES` samples lie in it. `host` is named where several nodes were
    sampled; `device` is empty for a metric of the host.
    """

    metric: str
    unit: str
    device: str
    host: str = ""
    mean: float
    low: float
    high: float
    samples: int
    span_ns: int = 0
    captured: float | None = None
    at_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


class ModulePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Which package a module of the node's own meter is: `package` is the PCI address, empty where
    unknown; `why` says how it is known, or why not (docs/metrics.md#modules).
    """

    module: str
    host: str = ""
    package: str = ""
    correlation: float | None = None
    why: str = ""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node over the job's time: `packages` report power (accelerators; the CPUs where no
    accelerator does), and `figures` are `energy` and `power_w` of all of them, `energy_node` and
    `power_node` by the node's own meter, and means of `cores_used`, `gpu_percent`, `clock_gpu` and
    the traffic; a figure that nothing tells is left out.
    """

    host: str
    packages: tuple[str, ...] = ()
    figures: dict[str, Figure] = {}


class NodeUnit(msgspec.Struct, frozen=True, kw_only=True):
    """One node, package or device against the others of its kind: its mean, and the ratio of it
    to the median of the others with the 95 % interval. `apart` by the rule of
    docs/metrics.md#nodes; None where no rule applies: fewer than three, or too few samples.
    """

    unit: str
    host: str
    kind: Literal["node", "device"]
    metric: str
    mean: Figure
    ratio: Figure
    apart: bool | None = None


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes whose telemetry a run holds, over `window_ns`: node by node, summed in `total`, and
    unit by unit. `missing` are nodes of the run without samples: the sums lack them.
    """

    window_ns: int
    rows: tuple[NodeRow, ...]
    total: dict[str, Figure]
    units: tuple[NodeUnit, ...] = ()
    missing: tuple[str, ...] = ()
