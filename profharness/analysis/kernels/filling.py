"""Fill: how much of the device the running kernels can occupy, from their workgroups
(docs/metrics.md#fill).

    fill = (1/|W|) integral over W of min(1, sum over running kernels of workgroups / compute units)
    dt

Workgroups beyond one per compute unit count no further; whether one is enough to keep a unit
working is a question of occupancy, not of fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.time.timeline import timeline
from profharness.stats import intervals
from profharness.stats.intervals import F64, Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

NEEDED_COVERAGE = 0.9
UNDERFILLED = 0.5


@dataclass(frozen=True)
class Fill:
    """Fill of one device over windows: all times in ns.

    `filled_ns` is the integral of fill, `underfilled_ns` the time in which compute kernels ran with
    a fill below 0.5, `unknown_ns` the time in which kernels without geometry ran. `known_kernel_ns`
    of `kernel_ns` is the summed kernel time with geometry.
    """

    window_ns: int
    busy_ns: int
    filled_ns: float
    underfilled_ns: int
    unknown_ns: int
    known_kernel_ns: int
    kernel_ns: int


@dataclass(frozen=True, eq=False)
class Offered:
    """What the kernels of one device offer its compute units in a merged set of windows.

    `fill` is None where their number is not known. `filled` are the times in which compute kernels
    ran that do not leave more than half of the units empty; kernels without geometry count as
    filling them, as does everything where their number is not known.
    """

    fill: Fill | None
    filled: Intervals


def offered(trace: Trace, device: int, windows: Intervals) -> Offered:
    """The work that was offered to the device at this position in `trace.devices`."""
    line = timeline(trace, device)
    compute = intervals.intersect(line.compute, windows)
    units = trace.devices[device].compute_units if device != NULL else None
    if not units:
        return Offered(None, compute)
    kernels = trace.kernels
    on_device = kernels.device == device
    known = on_device & (kernels.workgroups != NULL)
    spans = intervals.lasting(kernels.start_ns, kernels.dur_ns)
    inside = intervals.inside_ns(spans, windows)
    level = intervals.running(
        Intervals(spans.start[known], spans.end[known]), kernels.workgroups[known]
    )
    blind = on_device & ~known
    unknown = intervals.merge(Intervals(spans.start[blind], spans.end[blind]))
    enough = level.where(lambda workgroups: workgroups >= UNDERFILLED * units)
    filled = intervals.intersect(intervals.union(enough, unknown), compute)
    return Offered(
        Fill(
            window_ns=windows.total,
            busy_ns=intervals.intersect(line.kernels, windows).total,
            filled_ns=intervals.integrate(
                level, windows, lambda workgroups: _share(workgroups, units)
            ),
            underfilled_ns=compute.total - filled.total,
            unknown_ns=intervals.intersect(unknown, windows).total,
            known_kernel_ns=int(inside[known].sum()),
            kernel_ns=int(inside[on_device].sum()),
        ),
        filled,
    )


def _share(workgroups: F64, units: int) -> F64:
    share: F64 = np.minimum(workgroups / units, 1.0)
    return share


def add(fills: list[Fill]) -> Fill:
    """The sum over devices: the window is their number times the window."""
    return Fill(
        window_ns=sum(part.window_ns for part in fills),
        busy_ns=sum(part.busy_ns for part in fills),
        filled_ns=sum(part.filled_ns for part in fills),
        underfilled_ns=sum(part.underfilled_ns for part in fills),
        unknown_ns=sum(part.unknown_ns for part in fills),
        known_kernel_ns=sum(part.known_kernel_ns for part in fills),
        kernel_ns=sum(part.kernel_ns for part in fills),
    )
