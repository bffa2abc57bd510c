"""The time of every operator and device record of a trace inside of the window that is compared.

It is that of the figures: device work counts as far as it lies inside of the window of its device,
operators where the host launched these steps. Of a single step that only its mark tells of, and
without any, it is the whole file: the device works on after a mark has ended, and would lose the
end of its only step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.compare.operators.records import Clock
from profharness.analysis.operators.coverage import operator_share
from profharness.analysis.operators.nests import nests, self_time
from profharness.analysis.time.believed import believed
from profharness.analysis.time.counts import devices_with_work
from profharness.analysis.time.linking import link_kernels
from profharness.analysis.time.steps import everything, measured
from profharness.analysis.time.timeless import no_timeline
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import coded, distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Kernels, Ops, Trace

Mask = npt.NDArray[np.bool_]

IDLE, TOGETHER = "idle", "side by side (counted in each)"
NO_OPERATOR, COPIES = "no operator", "copies of no operator"
OUTSIDE = "outside any operator"


@dataclass(frozen=True, eq=False)
class Windowed:
    """Times in ns inside of the window: `ops` is each operator's own, on the device's clock that of
    its `kernels` and `copies`. `begun` are the operators that begin inside.

    `whole_ns` is the window of all `units` (devices or processes) together, `rest` its parts that
    belong to no operator, by name: the operators' times and the rest sum to the whole. `within` is
    when the host worked on it, None for a whole file.
    """

    clock: Clock
    label: str
    steps: int
    units: int
    whole_ns: int
    ops: I64
    kernels: I64
    copies: I64
    begun: Mask
    rest: dict[str, int]
    within: Intervals | None

    @property
    def parts(self) -> int:
        """What times are divided by for that of one step: steps of each device or process."""
        return self.steps * self.units

    def holds(self, at_ns: I64) -> Mask:
        """Which instants lie in the window; of a whole file all."""
        if self.within is None:
            return np.ones(len(at_ns), np.bool_)
        return intervals.contains(self.within, at_ns)


def windowed(trace: Trace) -> Windowed | None:
    """The window of a trace; None where it holds no operators, or its kernels no times."""
    if not len(trace.ops) or (len(trace.kernels) and no_timeline(trace)):
        return None
    trace = believed(trace)
    window = _window(trace)
    if not window.everywhere.total:
        return None
    if len(trace.kernels) or len(trace.copies):
        return _of_device(trace, window)
    return _of_host(trace, window)


def _window(trace: Trace) -> Windows:
    window = measured(trace)
    return window if _is_of_steps(window) else everything(trace)


def _of_device(trace: Trace, window: Windows) -> Windowed:
    within, works = _within(window), (trace.kernels, trace.copies)
    kernel_ns, copy_ns = (_inside(table, window) for table in works)
    own = np.zeros(len(trace.ops), np.int64)
    for op, inside in ((trace.kernels.op, kernel_ns), (trace.copies.op, copy_ns)):
        np.add.at(own, op[op != NULL], inside[op != NULL])
    devices = devices_with_work(trace)
    whole = window.total_ns(devices)
    device, start, dur = (
        np.concatenate([getattr(table, name).astype(np.int64) for table in works])
        for name in ("device", "start_ns", "dur_ns")
    )
    busy = sum(
        _running(device[own], intervals.lasting(start[own], dur[own]), window.on(place))
        for place in distinct(device).tolist()
        for own in (device == place,)
    )
    return Windowed(
        clock="device",
        label=window.label,
        steps=max(window.steps, 1),
        units=len(devices),
        whole_ns=whole,
        ops=own,
        kernels=kernel_ns,
        copies=copy_ns,
        begun=_begun(trace.ops, within),
        within=within,
        rest={
            **_unowned(trace, kernel_ns, copy_ns),
            IDLE: whole - busy,
            TOGETHER: busy - int(kernel_ns.sum() + copy_ns.sum()),
        },
    )


def _inside(table: Kernels | Copies, window: Windows) -> I64:
    return window.inside_ns(intervals.lasting(table.start_ns, table.dur_ns), table.device)


def _running(group: I64, spans: Intervals, when: Intervals) -> int:
    """Time of the window in which at least one span of a group runs, summed over the groups: laid
    out one behind the other, those of all groups are merged at once.
    """
    place = coded(group)[1] * (when.total + 1)
    start, end = (intervals.measure_before(when, at) + place for at in (spans.start, spans.end))
    return intervals.merge(Intervals(start, end)).total


def _unowned(trace: Trace, kernel_ns: I64, copy_ns: I64) -> dict[str, int]:
    """Time of the work of no operator, by why that is."""
    share = operator_share(trace, link_kernels(trace), kernel_ns)
    alone = int(kernel_ns[trace.kernels.op == NULL].sum())
    rest = {f"{NO_OPERATOR}: {why}": ns for why, ns in (share.reasons if share else {}).items()}
    left = alone - sum(rest.values())
    if left:
        rest[NO_OPERATOR] = left
    rest[COPIES] = int(copy_ns[trace.copies.op == NULL].sum())
    return rest


def _of_host(trace: Trace, window: Windows) -> Windowed:
    ops, when, within = trace.ops, window.when, _within(window)
    start, end = (
        intervals.measure_before(when, at) for at in (ops.start_ns, ops.start_ns + ops.dur_ns)
    )
    own = self_time(start, end - start, nests(ops).parent)
    process = pack([ops.source, ops.pid])
    running = _running(process, intervals.lasting(ops.start_ns, ops.dur_ns), when)
    units = len(distinct(process))
    whole = when.total * units
    nothing = np.zeros(0, np.int64)
    return Windowed(
        clock="host",
        label=window.label,
        steps=max(window.steps, 1),
        units=units,
        whole_ns=whole,
        ops=own,
        kernels=nothing,
        copies=nothing,
        begun=_begun(ops, within),
        within=within,
        rest={OUTSIDE: whole - running, TOGETHER: running - int(own.sum())},
    )


def _is_of_steps(window: Windows) -> bool:
    return window.steps > 1 or window.marks is not None


def _within(window: Windows) -> Intervals | None:
    return window.on_host if _is_of_steps(window) else None


def _begun(ops: Ops, within: Intervals | None) -> Mask:
    if within is None:
        return np.ones(len(ops), np.bool_)
    return intervals.contains(within, ops.start_ns)
