"""When a device may have run work that nobody recorded (docs/metrics.md#not-recorded).

A kernel that was launched and has not begun, while the device shows nothing, is no idle device:
the device runs work that is not in the file (of a graph that lost its kernels, of a filtered trace,
of the time before the recording, of another process), or waits for it. The same holds while the
host waits in a synchronising call for work of which the file has no end.

Each contributor is a pure function of the trace, its work and a device that gives such stretches,
in any order, with overlaps, and regardless of recorded work: `not_recorded` takes away what ran.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.time.device_work import Work
from profharness.analysis.time.event_waits import behind_event_wait, behind_host_function
from profharness.analysis.time.graph_losses import of_lost_graph_kernels
from profharness.analysis.time.unknown_times import of_unknown_length, of_unknown_place
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Contributor = Callable[[Trace, Work, int], Intervals]

ENDED_NS = 10_000
"""Work that begins within this time after other work ended began because that ended, and a start
that is later than usual by less is one of many.
"""
UNMEASURED_PAUSE_NS = 20_000
"""The pause before queued work that is usual where none was measured. MI300X pauses for 12 to 15 µs
between a graph and the kernel behind it.
"""
LONGEST_PAUSE_NS = 100_000
"""A longer pause is usual nowhere, nor does a synchronising call return later after its work: some
seven times the longest of MI300X, so that slower devices and hosts have room.
"""
USUAL_START_NS = 1_000_000
"""From a launch's return to the start on an empty device, where too few starts were seen; at most,
where a trace that lacks work makes starts seem late.
"""
NEEDED_STARTS = 20
_PERCENTILE = 99.0
_BEFORE_ALL = np.iinfo(np.int64).min
_KINDS = 3  # kernel, copy, graph


def not_recorded(trace: Trace, work: Work, device: int) -> Intervals:
    """The stretches in which the device shows nothing and may have run work that is not in the
    file, as a merged set.
    """
    found = [contribute(trace, work, device) for contribute in CONTRIBUTORS]
    if not any(map(len, found)):
        return intervals.EMPTY
    return intervals.subtract(intervals.union(*found), work.busy(device).times)


def not_begun(trace: Trace, work: Work, device: int) -> Intervals:
    """From the launch's return and the usual start latency to the start of the work that ends each
    pause; none for work that followed recorded work, a wait for recorded work of another device, or
    a function of the host that recorded work let begin.
    """
    busy = work.busy(device)
    pauses = Intervals(np.concatenate(([_BEFORE_ALL], busy.times.end[:-1])), busy.times.start)
    if not len(busy.times):
        return intervals.EMPTY
    first = busy.at(pauses.end)
    call = work.call[first]
    linked = call != NULL
    if not linked.any():
        return intervals.EMPTY
    first, call = first[linked], call[linked]
    began, start = pauses.start[linked], pauses.end[linked]
    api = trace.api
    returned = api.start_ns[call] + api.dur_ns[call]
    kind = _kind(work, first)
    met_empty = (api.start_ns[call] >= began) & (began > _BEFORE_ALL)
    latency, pause = _usual(kind, np.maximum(start - returned, 0), met_empty)
    low = np.maximum(began, returned + latency[kind])
    late = (start - low > ENDED_NS) & (began < start - pause[kind])
    if not late.any():
        return intervals.EMPTY
    late &= ~_after_awaited(trace, work, first, call, start)
    late &= ~(
        behind_host_function(trace, work)[call] & work.first_of_call[first] & (began > _BEFORE_ALL)
    )
    return intervals.subtract(
        intervals.merge(Intervals(low[late], start[late])), remote_copies(trace, device)
    )


def _kind(work: Work, rows: I64) -> I64:
    """0 for a kernel, 1 for a copy, 2 for work of a graph: how it starts."""
    kind = (rows >= work.kernels).astype(np.int64)
    in_graph = work.links.in_graph
    if in_graph.any():
        kernels = kind == 0
        kind[kernels] = 2 * in_graph[rows[kernels]]
    return kind


def _usual(kind: I64, latency_ns: I64, met_empty: Mask) -> tuple[I64, I64]:
    """For each kind the usual time from the launch's return to the start on an empty device, and
    the usual pause of a device with work in its queues, which is no longer.
    """
    usual = np.full(_KINDS, USUAL_START_NS, np.int64)
    pause = np.full(_KINDS, UNMEASURED_PAUSE_NS, np.int64)
    for one in range(_KINDS):
        seen = latency_ns[met_empty & (kind == one)]
        if len(seen) >= NEEDED_STARTS:
            longest = int(np.percentile(seen, _PERCENTILE, method="lower"))
            usual[one] = min(longest, USUAL_START_NS)
            pause[one] = min(max(int(usual[one]), ENDED_NS), LONGEST_PAUSE_NS)
    return usual, pause


def _after_awaited(trace: Trace, work: Work, rows: I64, call: I64, start_ns: I64) -> Mask:
    """Which of these pieces of work came behind a wait for an event or a value and began when
    recorded work, of whichever device, had just ended or went on.
    """
    behind = behind_event_wait(trace, work)[call] & work.first_of_call[rows]
    if not behind.any():
        return behind
    return behind & (_last_end(work, start_ns) >= start_ns - ENDED_NS)


def remote_copies(trace: Trace, device: int) -> Intervals:
    """Copies that another engine ran with this device as source or destination."""
    copies = trace.copies
    rows = (copies.device != device) & (
        (copies.src_device == device) | (copies.dst_device == device)
    )
    return intervals.merge(intervals.lasting(copies.start_ns[rows], copies.dur_ns[rows]))


def waited_for(trace: Trace, work: Work, device: int) -> Intervals:
    """What synchronising calls of threads that launch on the device went on for after the last
    recorded work of any device had ended, where that is long.
    """
    api = trace.api
    rows = np.flatnonzero(patterns.matching(trace.strings, api, patterns.STREAM_SYNCHRONISE))
    rows = rows[api.dur_ns[rows] > LONGEST_PAUSE_NS]
    if not len(rows):
        return intervals.EMPTY
    start = api.start_ns[rows]
    end = start + api.dur_ns[rows]
    low = np.maximum(_last_end(work, end), start)
    long = end - low > LONGEST_PAUSE_NS
    if not long.any():
        return intervals.EMPTY
    thread = work.thread_of_call
    launching = distinct(thread[work.call[(work.device == device) & (work.call != NULL)]])
    long &= np.isin(thread[rows], launching)
    return Intervals(low[long], end[long])


def _last_end(work: Work, at_ns: I64) -> I64:
    """When the last recorded work of any device had ended before each of these instants, which is
    itself while work runs; the least number where none had begun.
    """
    times = work.busy_anywhere
    last = np.searchsorted(times.start, at_ns) - 1
    if not len(times):
        return np.full(len(at_ns), _BEFORE_ALL)
    return np.where(last >= 0, np.minimum(times.end[np.maximum(last, 0)], at_ns), _BEFORE_ALL)


CONTRIBUTORS: tuple[Contributor, ...] = (
    not_begun,
    waited_for,
    of_unknown_length,
    of_unknown_place,
    of_lost_graph_kernels,
)
