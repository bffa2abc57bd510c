"""What the host was in, summed over a window: parts by cause, kind and name that sum to it exactly
(docs/metrics.md#what-the-host-did).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from profharness.analysis.host.after_waits import Opened, opened_by_waits
from profharness.analysis.host.kinds import without_address
from profharness.analysis.host.records import AfterWait, HostTime
from profharness.analysis.host.step_threads import step_threads
from profharness.analysis.host.tally import KEPT, HostTally
from profharness.analysis.host.timeline import host_rows
from profharness.analysis.time.idle import Gaps, HostThread, IdleAnalysis, Stretches
from profharness.analysis.time.idle_spans import host_sets
from profharness.analysis.time.not_recorded import remote_copies
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def of_idle(
    trace: Trace,
    idle: IdleAnalysis,
    devices: tuple[int, ...],
    when: Windows,
    shown: Iterable[Trace] = (),
) -> HostTime:
    """What the host did while each of the devices was idle. Causes sum as in the partition. `shown`
    are the same records with Python's functions, in parts that each hold all of their processes.
    """
    tally, opened = HostTally(launching=_launching(trace)), Opened()
    asked = _Asked()
    for device in devices:
        own = when.on(device)
        if not len(own):
            continue
        gaps = idle.gaps(device, int(own.start[0]), int(own.end[-1]))
        stretches = idle.stretches(device, gaps)
        known = asked.windows = idle.known(device, own)
        asked.gaps.append((gaps, known))
        elsewhere = intervals.intersect(remote_copies(trace, device), known)
        _after_launch(tally, idle, stretches, elsewhere, asked)
        for host, stretch in stretches.before:
            for cause, held in host_sets(host, asked.inside(stretch)).items():
                asked.add(cause.removesuffix("_ns"), held, host)
    tally.near = asked.reach()
    for part in _or_plain(trace, shown):
        tally.turn_to(part)
        asked.answer(tally)
        for gaps, known in asked.gaps:
            opened_by_waits(tally, idle, gaps, known, opened)
    asked.answer(tally, all_of_it=True)
    window_ns = when.total_ns(devices)
    return HostTime(
        of="idle",
        window_ns=window_ns,
        total_ns=tally.total_ns,
        steps=when.steps,
        parts=tally.parts(window_ns),
        after_waits=tuple(
            AfterWait(name=name, gaps=count, ns=ns, share=ns / window_ns)
            for name, (ns, count) in sorted(opened.items(), key=lambda item: (-item[1][0], item[0]))
        )[:KEPT],
    )


def _launching(trace: Trace) -> frozenset[str]:
    """The names of the operators to which work of a device belongs."""
    rows = distinct(np.concatenate((trace.kernels.op, trace.copies.op)))
    names = distinct(trace.ops.name[rows[rows != NULL]])
    return frozenset(without_address(trace.strings[int(name)]) for name in names)


def of_window(trace: Trace, when: Windows, shown: Iterable[Trace] = ()) -> HostTime | None:
    """What the thread that runs the steps was in over the window, for each process that recorded
    operators in it; None without any. `shown` is as for `of_idle`.
    """
    rows = host_rows(trace)
    left = [rows.owner(thread) for thread in step_threads(trace, rows, when.when)]
    window_ns = when.when.total * len(left)
    if not window_ns:
        return None
    processes, tally = len(left), HostTally()
    for part in _or_plain(trace, shown):
        tally.turn_to(part)
        found = {owner: tally.thread_of(owner) for owner in left}
        for thread in (thread for thread in found.values() if thread != NULL):
            tally.add_window(when.when, thread)
        left = [owner for owner in left if found[owner] == NULL]
    for _ in left:
        tally.add("", when.when, NULL)
    return HostTime(
        of="window",
        window_ns=window_ns,
        total_ns=window_ns,
        steps=when.steps,
        processes=processes,
        parts=tally.parts(window_ns),
    )


def _or_plain(trace: Trace, shown: Iterable[Trace]) -> Iterator[Trace]:
    """The parts, else the records without Python's functions. Whether the program has a device to
    wait for is told by all of its records.
    """
    any_part = False
    for part in shown:
        any_part = True
        yield replace(part, kernels=trace.kernels, copies=trace.copies)
        del part
    if not any_part:
        yield trace


@dataclass(eq=False)
class _Asked:
    """Idle time that the host held up, by cause and thread, until a trace is there that tells of
    the thread; `gaps` are those of each device with its window. Not frozen, as it fills and empties
    while one device after the other, in its `windows`, is gone through.
    """

    windows: Intervals = intervals.EMPTY
    gaps: list[tuple[Gaps, Intervals]] = field(default_factory=list)
    times: list[tuple[str, Intervals, HostThread]] = field(default_factory=list)

    def inside(self, stretch: Intervals) -> Intervals:
        return intervals.intersect(intervals.merge(stretch), self.windows)

    def reach(self) -> Intervals:
        """All gaps, with the instants beside them: what ends where a gap begins has opened it."""
        return intervals.union(*(Intervals(gaps.start - 1, gaps.end + 1) for gaps, _ in self.gaps))

    def add(self, cause: str, held: Intervals, host: HostThread) -> None:
        self.times.append((cause, held, host))

    def answer(self, tally: HostTally, *, all_of_it: bool = False) -> None:
        """Tally what the trace at hand tells of; with `all_of_it` the rest as not known."""
        left = []
        for cause, held, host in self.times:
            thread = tally.thread(host)
            if thread != NULL or all_of_it:
                tally.add(cause, held, thread)
            else:
                left.append((cause, held, host))
        self.times = left


def _after_launch(
    tally: HostTally,
    idle: IdleAnalysis,
    stretches: Stretches,
    elsewhere: Intervals,
    asked: _Asked,
) -> None:
    """Idle time that the host did not cause: its launching calls had begun. Where the host may
    have, since a stream can wait for what it did next, its time is split too. `elsewhere` are the
    copies of other engines.
    """
    tally.add_device("no_host_record", asked.inside(stretches.unlinked).total)
    behind, queued = stretches.behind_wait, asked.inside(stretches.queued)
    for host, own in idle.by_thread(stretches.behind_by):
        held = asked.inside(Intervals(behind.start[own], behind.end[own]))
        asked.add("waiting_copy_or_event", held, host)
    waiting = intervals.intersect(queued, elsewhere).total
    tally.add_device("waiting_copy_or_event", waiting)
    tally.add_device("queued_gap", queued.total - waiting)
    launching = stretches.launching
    for host, own in idle.by_thread(stretches.launched_by):
        within = asked.inside(Intervals(launching.start[own], launching.end[own]))
        moved = intervals.intersect(within, elsewhere)
        tally.add_device("waiting_copy_or_event", moved.total)
        asked.add("launch_in_progress", intervals.subtract(within, moved), host)
