"""Fill: how much of the device the running kernels can occupy, from their workgroups (METRICS 3).

    fill = (1/|W|) integral over W of min(1, sum over running kernels of workgroups / compute units) dt

Workgroups beyond one per compute unit count no further; whether one is enough to keep a unit working is
a question of occupancy, not of fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis import intervals
from profharness.analysis.intervals import F64, Intervals
from profharness.analysis.timeline import timeline
from profharness.trace.model import NULL, Trace

NEEDED_COVERAGE = 0.9
UNDERFILLED = 0.5


@dataclass(frozen=True)
class Fill:
    """Fill of one device over windows: all times in ns.

    `filled_ns` is the integral of fill, `underfilled_ns` the time in which compute kernels ran with a
    fill below 0.5, `unknown_ns` the time in which kernels without geometry ran. `known_kernel_ns` of
    `kernel_ns` is the summed kernel time with geometry.
    """

    window_ns: int
    busy_ns: int
    filled_ns: float
    underfilled_ns: int
    unknown_ns: int
    known_kernel_ns: int
    kernel_ns: int


def fill(trace: Trace, device: int, windows: Intervals) -> Fill | None:
    """The fill of a device in a merged set of windows; None where its number of compute units is not known."""
    units = trace.devices[device].compute_units if device != NULL else None
    if not units:
        return None
    kernels = trace.kernels
    here = kernels.device == device
    known = here & (kernels.workgroups != NULL)
    spans = intervals.lasting(kernels.start_ns, kernels.dur_ns)
    inside = intervals.inside_ns(spans, windows)
    offered = intervals.running(Intervals(spans.start[known], spans.end[known]), kernels.workgroups[known])
    blind = here & ~known
    unknown = intervals.merge(Intervals(spans.start[blind], spans.end[blind]))
    line = timeline(trace, device)
    compute = intervals.intersect(line.compute, windows)
    enough = offered.where(lambda workgroups: workgroups >= UNDERFILLED * units)
    return Fill(
        window_ns=windows.total, busy_ns=intervals.intersect(line.kernels, windows).total,
        filled_ns=intervals.integrate(offered, windows, lambda workgroups: _share(workgroups, units)),
        underfilled_ns=compute.total - intervals.intersect(intervals.union(enough, unknown), compute).total,
        unknown_ns=intervals.intersect(unknown, windows).total,
        known_kernel_ns=int(inside[known].sum()), kernel_ns=int(inside[here].sum()))


def filled(trace: Trace, device: int, windows: Intervals) -> Intervals:
    """When compute kernels of a device ran in the windows that do not leave more than half of its units empty.

    Kernels without geometry count as filling it, as does everything where the number of units is not known.
    """
    units = trace.devices[device].compute_units if device != NULL else None
    compute = intervals.intersect(timeline(trace, device).compute, windows)
    if not units:
        return compute
    kernels = trace.kernels
    here = kernels.device == device
    known = here & (kernels.workgroups != NULL)
    spans = intervals.lasting(kernels.start_ns, kernels.dur_ns)
    offered = intervals.running(Intervals(spans.start[known], spans.end[known]), kernels.workgroups[known])
    enough = offered.where(lambda workgroups: workgroups >= UNDERFILLED * units)
    blind = here & ~known
    return intervals.intersect(intervals.union(enough, Intervals(spans.start[blind], spans.end[blind])), compute)


def _share(workgroups: F64, units: int) -> F64:
    share: F64 = np.minimum(workgroups / units, 1.0)
    return share


def add(fills: list[Fill]) -> Fill:
    """The sum over devices: the window is their number times the window."""
    return Fill(window_ns=sum(part.window_ns for part in fills), busy_ns=sum(part.busy_ns for part in fills),
                filled_ns=sum(part.filled_ns for part in fills), underfilled_ns=sum(part.underfilled_ns for part in fills),
                unknown_ns=sum(part.unknown_ns for part in fills),
                known_kernel_ns=sum(part.known_kernel_ns for part in fills), kernel_ns=sum(part.kernel_ns for part in fills))
