"""Device time of a window split into disjoint parts: compute, exposed communication, exposed copy,
idle, and what is idle or not recorded (docs/metrics.md#partition).

The parts are measured in this order: what computes is compute, whatever else runs beside it. They
sum to the window exactly. For several devices each is split on its own, in its own window, and the
parts are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import kernel_category
from profharness.analysis.records import IdleCauses, Partition
from profharness.analysis.time.counts import devices_with_work
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.windows import Windows
from profharness.analysis.verdict.records import add_kernel_parts
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.model import Kernels, Strings, Trace


@dataclass(frozen=True, eq=False)
class DeviceTimeline:
    """What one device did, each set merged: `kernels` is compute and communication together."""

    compute: Intervals
    communication: Intervals
    copies: Intervals

    @cached_property
    def kernels(self) -> Intervals:
        return intervals.union(self.compute, self.communication)


def timeline(trace: Trace, device: int) -> DeviceTimeline:
    """The timeline of the device at this position in `trace.devices`; kept with the table of
    kernels, since every split asks for it.
    """
    return trace.kernels.kept(
        (timeline, device), (trace.copies, trace.strings), lambda: _timeline(trace, device)
    )


def _timeline(trace: Trace, device: int) -> DeviceTimeline:
    kernels, copies = trace.kernels, trace.copies
    on_device = kernels.device == device
    talking = is_communication(trace.strings, kernels)
    spans = intervals.lasting(kernels.start_ns, kernels.dur_ns)
    compute, communication = on_device & ~talking, on_device & talking
    moved = copies.device == device
    return DeviceTimeline(
        compute=intervals.merge(Intervals(spans.start[compute], spans.end[compute])),
        communication=intervals.merge(
            Intervals(spans.start[communication], spans.end[communication])
        ),
        copies=intervals.merge(intervals.lasting(copies.start_ns[moved], copies.dur_ns[moved])),
    )


def is_communication(strings: Strings, kernels: Kernels) -> npt.NDArray[np.bool_]:
    """Which kernels are collectives (RCCL, NCCL and their like) by name; each distinct name is
    judged once. Kept, and not to be written to.
    """
    return kernels.kept(
        is_communication, (strings,), lambda: _is_communication(strings, kernels.name)
    )


def _is_communication(strings: Strings, names: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    talking = np.array(
        [
            code
            for code in distinct(names)
            if kernel_category(strings[int(code)]) == "communication"
        ],
        np.int32,
    )
    mask = np.isin(names, talking)
    mask.flags.writeable = False
    return mask


def partition(trace: Trace, start_ns: int, end_ns: int, device: int | None = None) -> Partition:
    """The split of [start, end) on one device (a position in `trace.devices`), or on all that did
    work.
    """
    return partition_windows(
        trace, intervals.window(start_ns, end_ns), None if device is None else (device,)
    )


def partition_windows(
    trace: Trace,
    windows: Windows | Intervals,
    devices: tuple[int, ...] | None = None,
    idle: IdleAnalysis | None = None,
) -> Partition:
    """The split of the window of each device, or of a merged set that holds for all of them. With
    an `idle` analysis the causes of idle time are split too, and the time in which unrecorded work
    may have run is told from it.
    """
    chosen = tuple(devices_with_work(trace)) if devices is None else devices
    parts = []
    for device in chosen:
        when = windows.on(device) if isinstance(windows, Windows) else windows
        parts.append(_device_partition(timeline(trace, device), when, idle, device))
    return add(parts)


def _device_partition(
    line: DeviceTimeline, windows: Intervals, idle: IdleAnalysis | None, device: int
) -> Partition:
    compute = intervals.intersect(line.compute, windows)
    communication = intervals.intersect(line.communication, windows)
    copies = intervals.intersect(line.copies, windows)
    kernels = intervals.union(compute, communication)
    busy = intervals.union(kernels, copies)
    free = windows.total - busy.total
    unknown = intervals.intersect(idle.not_recorded(device), windows).total if idle else 0
    return Partition(
        window_ns=windows.total,
        compute_ns=compute.total,
        exposed_communication_ns=kernels.total - compute.total,
        exposed_copy_ns=busy.total - kernels.total,
        idle_ns=free - unknown,
        idle_or_not_recorded_ns=unknown,
        communication_ns=communication.total,
        copy_ns=copies.total,
        idle_causes=idle.causes(device, windows) if idle else None,
    )


def add(parts: list[Partition]) -> Partition:
    """The sum of partitions, part by part; causes and parts of kernel time are kept only where all
    have them.
    """
    causes = [part.idle_causes for part in parts if part.idle_causes is not None]
    kernels = [part.kernel_parts for part in parts if part.kernel_parts is not None]
    unknown = sum(part.idle_or_not_recorded_ns for part in parts)
    again = sum(part.idle_or_not_recorded_ns for part in parts if part.open_recurs)
    return Partition(
        window_ns=sum(part.window_ns for part in parts),
        compute_ns=sum(part.compute_ns for part in parts),
        exposed_communication_ns=sum(part.exposed_communication_ns for part in parts),
        exposed_copy_ns=sum(part.exposed_copy_ns for part in parts),
        idle_ns=sum(part.idle_ns for part in parts),
        idle_or_not_recorded_ns=unknown,
        communication_ns=sum(part.communication_ns for part in parts),
        copy_ns=sum(part.copy_ns for part in parts),
        idle_causes=_add_causes(causes) if causes and len(causes) == len(parts) else None,
        open_recurs=2 * again > unknown,
        kernel_parts=(
            add_kernel_parts(kernels) if kernels and len(kernels) == len(parts) else None
        ),
    )


def _add_causes(causes: list[IdleCauses]) -> IdleCauses:
    return IdleCauses(
        **{
            name: sum(getattr(cause, name) for cause in causes)
            for name in IdleCauses.__struct_fields__
        }
    )
