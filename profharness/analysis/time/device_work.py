"""All device work of a trace in one table, with the host calls that launched it, and the queues
that it forms.

A stream is taken as a queue in order of launch. Work whose launch is not in the file counts as
launched at its own start. Graph kernels are launched together, by the one call that launches the
graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.analysis.time.linking import Links, link_copies, link_kernels
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals, Steps
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Api, Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Busy:
    """All work of one device: its rows in Work by start, their starts, and the times in which any
    of it ran, merged.
    """

    rows: I64
    start: I64
    times: Intervals

    def at(self, start_ns: I64) -> I64:
        """The first row that begins at each of these instants or later; NULL where none does."""
        position = np.searchsorted(self.start, start_ns)
        found = np.full(len(start_ns), NULL, np.int64)
        inside = position < len(self.rows)
        found[inside] = self.rows[position[inside]]
        return found


@dataclass(eq=False)
class Work:
    """All device work of a trace, kernels before copies: times and the row of the launching call
    (NULL: none).
    """

    start: I64
    end: I64
    device: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    call: I64
    links: Links
    """The kernels' links; those of the copies are in `call` only."""
    api: Api
    """The host calls that `call` counts."""
    _busy: dict[int, Busy] = field(default_factory=dict, init=False)
    _unlinked: dict[int, tuple[I64, I64]] = field(default_factory=dict, init=False)

    @property
    def kernels(self) -> int:
        """How many of the rows are kernels: the first ones."""
        return len(self.links.api)

    @cached_property
    def launched(self) -> I64:
        """When each piece of work was launched: the start of its call, its own start where there is
        none or the clocks disagree.
        """
        if not len(self.api):
            return self.start
        called = self.api.start_ns[np.maximum(self.call, 0)]
        return np.where(self.call == NULL, self.start, np.minimum(called, self.start))

    @cached_property
    def ready(self) -> I64:
        """When each piece of work was ready to run: its call's return, or its own start where that
        came first or no call is known.
        """
        if not len(self.api):
            return self.start
        row = np.maximum(self.call, 0)
        returned = self.api.start_ns[row] + self.api.dur_ns[row]
        return np.where(self.call == NULL, self.start, np.minimum(returned, self.start))

    def on(self, device: int) -> I64:
        """Rows of one device with a duration, by start; among equals linked ones first, by
        launching call.
        """
        rows = np.flatnonzero((self.device == device) & (self.end > self.start))
        ordered: I64 = rows[
            np.lexsort((self.call[rows], self.call[rows] == NULL, self.start[rows]))
        ]
        return ordered

    def busy(self, device: int) -> Busy:
        """The work of one device that has a duration; made once."""
        if device not in self._busy:
            rows = self.on(device)
            start = self.start[rows]
            self._busy[device] = Busy(
                rows, start, intervals.merge(Intervals(start, self.end[rows]))
            )
        return self._busy[device]

    def unlinked(self, device: int) -> tuple[I64, I64]:
        """The work of one device with times that no recorded call launched, and when the first
        linked work of its stream began (the greatest integer where there is none); made once.
        """
        if device not in self._unlinked:
            here = (self.device == device) & (self.start != NULL)
            rows = np.flatnonzero(here & (self.call == NULL))
            linked = np.flatnonzero(here & (self.call != NULL)) if len(rows) else rows
            streams = int(self.stream[here].max(initial=NULL)) + 2  # the last one is no stream's
            begun = np.full(streams, np.iinfo(np.int64).max)
            np.minimum.at(begun, self.stream[linked], self.start[linked])
            self._unlinked[device] = rows, begun[self.stream[rows]]
        return self._unlinked[device]

    @cached_property
    def thread_of_call(self) -> I64:
        """A number for the thread of each host call."""
        return pack([self.api.source, self.api.pid, self.api.tid])

    @cached_property
    def busy_anywhere(self) -> Intervals:
        """The times in which any device ran work, merged."""
        return intervals.merge(Intervals(self.start, self.end))

    @cached_property
    def first_of_call(self) -> Mask:
        """Which records are the earliest of their launching call: all but the later kernels of a
        graph.
        """
        order = np.lexsort((self.start, self.call))
        call = self.call[order]
        first = np.zeros(len(order), np.bool_)
        first[order] = np.concatenate(([True], call[1:] != call[:-1]))[: len(order)] & (
            call != NULL
        )
        return first


def work_of(trace: Trace) -> Work:
    """Kernels and copies of a trace with their launching calls."""
    kernels, copies = trace.kernels, trace.copies
    links = link_kernels(trace)
    start = np.concatenate((kernels.start_ns, copies.start_ns))
    return Work(
        start=start,
        end=start + np.concatenate((kernels.dur_ns, copies.dur_ns)),
        device=np.concatenate((kernels.device, copies.device)),
        stream=np.concatenate((kernels.stream, copies.stream)),
        source=np.concatenate((kernels.source, copies.source)),
        call=np.concatenate((links.api, link_copies(trace).api)),
        links=links,
        api=trace.api,
    )


@dataclass(frozen=True, eq=False)
class Delays:
    """Kernel start less launch start, in ns, one entry per linked kernel (`kernel` is its row).

    Where `met_empty`, the stream held no unfinished work at the launch and the delay is a launch
    latency; elsewhere it is a queue delay. Negative delays show clocks that disagree.
    """

    kernel: I64
    delay: I64
    met_empty: Mask


def delays(trace: Trace, work: Work) -> Delays:
    """The delay of every linked kernel, and whether it met an empty queue."""
    launched = work.launched
    met_empty = np.zeros(len(work.start), np.bool_)
    for rows in streams_of(work):
        order = rows[np.lexsort((work.start[rows], launched[rows]))]
        done = np.maximum.accumulate(work.end[order])
        met_empty[order[:1]] = True
        met_empty[order[1:]] = done[:-1] <= launched[order[1:]]
    kernel = np.flatnonzero(
        (work.call[: work.kernels] != NULL) & (work.start[: work.kernels] != NULL)
    )
    delay = (
        work.start[kernel] - trace.api.start_ns[work.call[kernel]]
        if len(kernel)
        else np.empty(0, np.int64)
    )
    return Delays(kernel, delay, met_empty[kernel])


def queued_ns(work: Work, windows: Windows) -> int:
    """The integral of queue depth, the number of launched and unfinished pieces of work, over the
    windows of the devices: the time each is queued, in sum.
    """
    return int(windows.inside_ns(Intervals(work.launched, work.end), work.device).sum())


def backlogged_streams(work: Work, device: int) -> Steps:
    """How many streams of a device held unfinished work, over time."""
    backlog = [
        intervals.merge(Intervals(work.launched[rows], work.end[rows]))
        for rows in streams_of(work)
        if int(work.device[rows[0]]) == device
    ]
    if not backlog:
        return intervals.running(intervals.EMPTY)
    return intervals.running(
        Intervals(
            np.concatenate([held.start for held in backlog]),
            np.concatenate([held.end for held in backlog]),
        )
    )


def streams_of(work: Work) -> list[I64]:
    """Rows of each stream; work without a stream forms one per device."""
    if not len(work.start):
        return []
    order = np.lexsort((work.stream, work.device))
    changes = (np.diff(work.device[order]) != 0) | (np.diff(work.stream[order]) != 0)
    return list(np.split(order, np.flatnonzero(changes) + 1))
