"""Why a device was idle: each instant of each gap gets the first cause that fits, in the order of
docs/metrics.md#idle-causes.

A gap lies between two pieces of device work (kernels or copies). What ends it, and the host call
that launched that piece, tell the cause:

1. no host record: the piece has no launching call in the file, or the host's records do not reach
  there;
2. waiting on a copy or an event: the piece had been launched behind an event wait of the launching
   thread, or a copy with this device at its other end was running elsewhere, or the launching
   thread was inside another copy call;
3. queued gap: the launch had returned before the gap began (dispatch, barrier, cache flush, graph
  replay);
4. launch in progress: from the start of the launching call to the end of the gap;
5. synchronisation: the launching thread was inside a synchronisation call;
6. host not ready: none of these; the launching call had not begun.

After the last piece of work there is no launching call: the threads that launched on this device
are looked at together. All measures are integer ns, so the causes sum to the idle time exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.records import IdleCauses
from profharness.analysis.time.device_work import Work, work_of
from profharness.analysis.time.event_waits import behind_event_wait, behind_host_function
from profharness.analysis.time.not_recorded import not_recorded, remote_copies
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.column import is_repeated
from profharness.trace.columns.keys import distinct, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MICRO_GAP_NS = 10_000


@dataclass(frozen=True, eq=False)
class Gaps:
    """Idle gaps of one device over `[low, high)`; `next` is the row in Work that ends the gap, NULL
    for the last one.
    """

    start: I64
    end: I64
    next: I64

    def intervals(self) -> Intervals:
        return Intervals(self.start, self.end)


@dataclass(frozen=True, eq=False)
class HostThread:
    """What one host thread did, as merged sets: copy calls, synchronisation, and how far its
    source's records reach. `owners` are the source, process and thread id of it; of several threads
    taken together those with most calls first.
    """

    owners: tuple[tuple[int, int, int], ...]
    copying: Intervals
    synchronising: Intervals
    recorded: Intervals

    @cached_property
    def blocked(self) -> Intervals:
        """In either kind of call."""
        return intervals.union(self.copying, self.synchronising)


@dataclass(frozen=True, eq=False)
class Stretches:
    """The gaps of one device as stretches with one rule each, all in order and without overlap:
    gaps that nothing in the file launched; of the others what lies after their launching call began
    (`behind_wait`: after an event wait; `queued`: the call had returned before the gap began;
    `launching`: it had not) and, by thread, what lies before. `behind_by` and `launched_by` are the
    rows of the calls.
    """

    unlinked: Intervals
    behind_wait: Intervals
    behind_by: I64
    queued: Intervals
    launching: Intervals
    launched_by: I64
    before: tuple[tuple[HostThread, Intervals], ...]


@dataclass(eq=False)
class IdleAnalysis:
    """Idle causes of one trace. Not frozen only because what is shared between windows is computed
    once.
    """

    trace: Trace
    _not_recorded: dict[int, Intervals] = field(default_factory=dict, init=False)
    _threads: dict[int, HostThread] = field(default_factory=dict, init=False)
    _gaps: dict[int, tuple[int, int, Gaps]] = field(default_factory=dict, init=False)

    @cached_property
    def work(self) -> Work:
        return work_of(self.trace)

    def causes(self, device: int, windows: Intervals) -> IdleCauses:
        """Idle time of a device in a merged set of windows, by cause, without that in which it may
        have run unrecorded work; `micro_ns` counts gaps that are shorter than 10 µs in full.
        """
        if not len(windows):
            return IdleCauses()
        gaps = self.gaps(device, int(windows.start[0]), int(windows.end[-1]))
        windows = self.known(device, windows)
        idle = intervals.inside_ns(gaps.intervals(), windows)
        micro = int(idle[gaps.end - gaps.start < MICRO_GAP_NS].sum())
        parts = _Parts(micro_ns=micro, macro_ns=int(idle.sum()) - micro)
        stretches = self.stretches(device, gaps)
        parts.no_host_record += int(intervals.inside_ns(stretches.unlinked, windows).sum())
        self._launched(device, stretches, windows, parts)
        for host, stretch in stretches.before:
            self._host_time(host, stretch, windows, parts)
        return parts.frozen()

    def stretches(self, device: int, gaps: Gaps) -> Stretches:
        """The gaps of a device, cut where the call that ends each of them began."""
        call = np.where(gaps.next == NULL, NULL, self.work.call[np.maximum(gaps.next, 0)])
        unlinked = (gaps.next != NULL) & (call == NULL)
        linked = call != NULL
        (behind_wait, behind_by), (queued, _), (launching, by) = self._after_launch(
            gaps, call, linked
        )
        return Stretches(
            Intervals(gaps.start[unlinked], gaps.end[unlinked]),
            behind_wait,
            behind_by,
            queued,
            launching,
            by,
            self._before_launch(device, gaps, call, linked),
        )

    def by_thread(self, calls: I64) -> Iterator[tuple[HostThread, Mask]]:
        """The threads that made the calls of these rows, and which of the calls each made."""
        numbers = self.work.thread_of_call[calls] if len(calls) else calls
        for number in distinct(numbers):
            yield self._thread(int(number)), numbers == number

    def longest(self, device: int, windows: Intervals) -> int:
        """The longest single gap of a device inside the windows, in ns, without what may have been
        unrecorded work; 0 without one.
        """
        return self._longest(device, windows, self.known(device, windows))

    def longest_with_unknown(self, device: int, windows: Intervals) -> int:
        """The longest single gap if nothing ran that was not recorded."""
        return self._longest(device, windows, windows)

    def _longest(self, device: int, windows: Intervals, counted: Intervals) -> int:
        if not len(windows):
            return 0
        gaps = self.gaps(device, int(windows.start[0]), int(windows.end[-1]))
        return int(intervals.inside_ns(gaps.intervals(), counted).max(initial=0))

    def gaps(self, device: int, low_ns: int, high_ns: int) -> Gaps:
        """The device's gaps that reach into [low, high). Those at its ends begin and end there, if
        no work lies beyond.
        """
        if device not in self._gaps or self._gaps[device][:2] != (low_ns, high_ns):
            self._gaps[device] = low_ns, high_ns, self._gaps_in(device, low_ns, high_ns)
        return self._gaps[device][2]

    def _gaps_in(self, device: int, low_ns: int, high_ns: int) -> Gaps:
        whole = self.work.busy(device)
        first = max(
            int(np.searchsorted(whole.times.end, low_ns, "right")) - 1, 0
        )  # one piece before, one behind: what lies beyond them is no gap's end
        last = int(np.searchsorted(whole.times.start, high_ns, "left")) + 1
        busy = Intervals(whole.times.start[first:last], whole.times.end[first:last])
        low = min(low_ns, int(busy.start[0])) if len(busy) else low_ns
        high = max(high_ns, int(busy.end[-1])) if len(busy) else high_ns
        free = intervals.complement(busy, low, high)
        keep = (free.end > low_ns) & (free.start < high_ns)
        start, end = free.start[keep], free.end[keep]
        return Gaps(start, end, whole.at(end))

    def not_recorded(self, device: int) -> Intervals:
        """When the device may have run work that is not in the file; made once."""
        if device not in self._not_recorded:
            self._not_recorded[device] = not_recorded(self.trace, self.work, device)
        return self._not_recorded[device]

    def known(self, device: int, windows: Intervals) -> Intervals:
        """Of a merged set of windows that in which it is known what the device did."""
        return intervals.subtract(windows, self.not_recorded(device))

    def _after_launch(self, gaps: Gaps, call: I64, linked: Mask) -> list[tuple[Intervals, I64]]:
        """The stretch of each gap after its launching call began, as `Stretches` has them, and the
        row of the call.
        """
        start, end, ended_by, call = (
            gaps.start[linked],
            gaps.end[linked],
            gaps.next[linked],
            call[linked],
        )
        api = self.trace.api
        began = api.start_ns[call]
        low = np.clip(began, start, end)
        behind_wait = behind_event_wait(self.trace, self.work)[call]
        behind_wait = behind_wait | behind_host_function(self.trace, self.work)[call]
        behind_wait &= self.work.first_of_call[ended_by]
        queued = began + api.dur_ns[call] <= start
        kinds = (behind_wait, queued & ~behind_wait, ~queued & ~behind_wait)
        return [(Intervals(low[of_kind], end[of_kind]), call[of_kind]) for of_kind in kinds]

    def _before_launch(
        self, device: int, gaps: Gaps, call: I64, linked: Mask
    ) -> tuple[tuple[HostThread, Intervals], ...]:
        """The stretch of each gap before its launching call began, and the thread that launched."""
        api = self.trace.api
        began = np.where(
            linked, api.start_ns[np.maximum(call, 0)] if len(api) else gaps.end, gaps.end
        )
        low, high = gaps.start, np.clip(began, gaps.start, gaps.end)
        thread = np.where(
            linked, self.work.thread_of_call[np.maximum(call, 0)] if len(api) else NULL, NULL
        )
        before = []
        for number in distinct(thread[linked]):
            of_thread = linked & (thread == number)
            before.append((self._thread(int(number)), Intervals(low[of_thread], high[of_thread])))
        after_all = gaps.next == NULL
        if after_all.any():
            before.append((self._all_launching(device), Intervals(low[after_all], high[after_all])))
        return tuple(before)

    def _launched(
        self, device: int, stretches: Stretches, windows: Intervals, parts: _Parts
    ) -> None:
        """After the launching calls began: waiting, queued, or launch in progress."""
        elsewhere = intervals.intersect(remote_copies(self.trace, device), windows)

        def measure(stretch: Intervals, within: Intervals) -> int:
            return int(intervals.inside_ns(stretch, within).sum())

        queued, launching = stretches.queued, stretches.launching
        queued_waiting, waiting = measure(queued, elsewhere), measure(launching, elsewhere)
        parts.waiting_copy_or_event += (
            measure(stretches.behind_wait, windows) + queued_waiting + waiting
        )
        parts.queued_gap += measure(queued, windows) - queued_waiting
        parts.launch_in_progress += measure(launching, windows) - waiting

    def _host_time(
        self, host: HostThread, stretch: Intervals, windows: Intervals, parts: _Parts
    ) -> None:
        """Divide the stretches, which lie in order without overlap, by what the host did."""
        within = intervals.intersect(intervals.merge(stretch), windows)

        def measure(held: Intervals) -> int:
            return intervals.intersect(within, held).total

        length = within.total
        recorded, copying = measure(host.recorded), measure(host.copying)
        blocked = measure(host.blocked)
        parts.no_host_record += length - recorded
        parts.waiting_copy_or_event += copying
        parts.synchronisation += blocked - copying
        parts.host_not_ready += recorded - blocked

    @cached_property
    def _copy_calls(self) -> Mask:
        return patterns.matching(self.trace.strings, self.trace.api, patterns.COPY_CALL)

    @cached_property
    def _synchronising_calls(self) -> Mask:
        return patterns.matching(self.trace.strings, self.trace.api, patterns.SYNCHRONISE)

    def _thread(self, number: int) -> HostThread:
        if number not in self._threads:
            self._threads[number] = self._host(self.work.thread_of_call == number)
        return self._threads[number]

    def _all_launching(self, device: int) -> HostThread:
        """The threads that launched work on this device, taken together; the calls of the device's
        sources where none is known.
        """
        on_device = self.work.device == device
        calls = self.work.call[on_device & (self.work.call != NULL)]
        if len(calls):
            return self._host(
                np.isin(self.work.thread_of_call, distinct(self.work.thread_of_call[calls]))
            )
        return self._host(np.isin(self.trace.api.source, distinct(self.work.source[on_device])))

    def _host(self, calls: Mask) -> HostThread:
        api = self.trace.api

        def span(selected: Mask) -> Intervals:
            return intervals.merge(intervals.lasting(api.start_ns[selected], api.dur_ns[selected]))

        first, group = first_rows(pack([api.source[calls], api.pid[calls], api.tid[calls]]))
        rows = np.flatnonzero(calls)[first[np.argsort(-np.bincount(group), kind="stable")]]
        return HostThread(
            tuple((int(api.source[row]), int(api.pid[row]), int(api.tid[row])) for row in rows),
            span(calls & self._copy_calls),
            span(calls & self._synchronising_calls & ~self._copy_calls),
            self._recorded(distinct(api.source[calls])),
        )

    def _recorded(self, sources: npt.NDArray[np.int32]) -> Intervals:
        """From the first to the last host record (calls, operators, marks) of each source."""
        reach = []
        for source in sources:
            starts, ends = [], []
            for table in (self.trace.api, self.trace.ops, self.trace.marks):
                if not len(table):
                    continue
                whole = is_repeated(table.source) and table.source[0] == source
                rows = slice(None) if whole else np.flatnonzero(table.source == source)
                if len(start := table.start_ns[rows]):
                    starts.append(int(start.min()))
                    ends.append(int((start + table.dur_ns[rows]).max()))
            reach.append(intervals.window(min(starts), max(ends)))
        return intervals.union(*reach)


@dataclass
class _Parts:
    """Running sums while the gaps of one device are gone through."""

    micro_ns: int
    macro_ns: int
    no_host_record: int = 0
    waiting_copy_or_event: int = 0
    queued_gap: int = 0
    launch_in_progress: int = 0
    synchronisation: int = 0
    host_not_ready: int = 0

    def frozen(self) -> IdleCauses:
        return IdleCauses(
            no_host_record_ns=self.no_host_record,
            waiting_copy_or_event_ns=self.waiting_copy_or_event,
            queued_gap_ns=self.queued_gap,
            launch_in_progress_ns=self.launch_in_progress,
            synchronisation_ns=self.synchronisation,
            host_not_ready_ns=self.host_not_ready,
            micro_ns=self.micro_ns,
            macro_ns=self.macro_ns,
        )
