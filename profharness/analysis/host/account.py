"""What the host was in, summed over a window: parts by cause, kind and name that sum to it exactly
(docs/metrics.md#what-the-host-did).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.records import AfterWait, HostPart, HostTime
from profharness.analysis.host.timeline import (
    OPS,
    HostRows,
    Timeline,
    host_rows,
    thread_of,
    timeline,
)
from profharness.analysis.time.idle import Gaps, HostThread, IdleAnalysis, Stretches
from profharness.analysis.time.idle_spans import host_sets
from profharness.analysis.time.steps import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
KEPT = 30
"""Parts with a name of their own; smaller ones are taken together, by cause and kind."""

Opened = dict[str, tuple[int, int]]
"""Idle ns and gaps by the name of the waiting call that opened them."""
_Key = tuple[str, str, str]
Times = Counter[_Key]
"""ns by cause, kind and name."""


def of_idle(trace: Trace, idle: IdleAnalysis, devices: tuple[int, ...], when: Windows) -> HostTime:
    """What the host did while each of the devices was idle. Causes sum as in the partition."""
    rows, times, opened = host_rows(trace), Times(), Opened()
    for device in devices:
        if len(when.when):
            low, high = int(when.when.start[0]), int(when.when.end[-1])
            gaps = idle.gaps(device, low, high)
            stretches = idle.stretches(device, gaps)
            _opened_by_waits(idle, gaps, when.when, opened, (trace, rows))
            elsewhere = intervals.intersect(idle.remote_copies(device), when.when)
            _after_launch(idle, stretches, (elsewhere, when.when), times, (trace, rows))
            for host, stretch in stretches.before:
                within = intervals.intersect(intervals.merge(stretch), when.when)
                for cause, held in host_sets(host, within).items():
                    _add(times, cause.removesuffix("_ns"), held, host, (trace, rows))
    window_ns = when.when.total * len(devices)
    return HostTime(
        of="idle",
        window_ns=window_ns,
        total_ns=times.total(),
        steps=when.steps,
        parts=_parts(times, window_ns),
        after_waits=tuple(
            AfterWait(name=name, gaps=count, ns=ns, share=ns / window_ns)
            for name, (ns, count) in sorted(opened.items(), key=lambda item: (-item[1][0], item[0]))
        )[:KEPT],
    )


def of_window(trace: Trace, when: Windows) -> HostTime | None:
    """What the thread that runs the steps was in over the window, for each process that recorded
    operators in it; None without any.
    """
    rows, times = host_rows(trace), Times()
    threads = step_threads(trace, rows, when.when)
    for thread in threads:
        _add_line(times, "", when.when, timeline(rows, thread, when.when), (trace, rows))
    window_ns = when.when.total * len(threads)
    if not window_ns:
        return None
    return HostTime(
        of="window",
        window_ns=window_ns,
        total_ns=window_ns,
        steps=when.steps,
        processes=len(threads),
        parts=_parts(times, window_ns),
    )


def step_threads(trace: Trace, rows: HostRows, when: Intervals) -> list[int]:
    """One thread of each process that has operators in the window: the one that marks its steps if
    that has operators, else the one with most time in outermost operators.
    """
    ops = rows.table == OPS
    outer = np.flatnonzero(ops)[trace.ops.depth[rows.row[ops]] == 0]
    inside = intervals.inside_ns(Intervals(rows.start[outer], rows.end[outer]), when)
    in_ops = np.bincount(rows.thread[outer], inside, len(rows.owners))
    marking = _marking(trace, rows)
    chosen: dict[tuple[int, int], int] = {}
    for thread in np.argsort(-in_ops, kind="stable").tolist():
        process = int(rows.owners[thread, 0]), int(rows.owners[thread, 1])
        if in_ops[thread] > 0 and (process not in chosen or thread in marking):
            chosen[process] = thread
    return sorted(chosen.values())


def _marking(trace: Trace, rows: HostRows) -> frozenset[int]:
    marks = trace.marks
    steps = [trace.strings.find(kind) for kind in ("step", "trial")]
    own = np.flatnonzero(np.isin(marks.kind, [code for code in steps if code != NULL]))
    if not len(own):
        return frozenset()
    first = first_rows(pack([marks.source[own], marks.pid[own], marks.tid[own]]))[0]
    return frozenset(
        thread_of(rows, int(marks.source[row]), int(marks.pid[row]), int(marks.tid[row]))
        for row in own[first].tolist()
    )


def _opened_by_waits(
    idle: IdleAnalysis, gaps: Gaps, windows: Intervals, opened: Opened, of: tuple[Trace, HostRows]
) -> None:
    """Gaps that began while the thread which ended them was in a waiting call, and in which that
    call returned: it had waited for the device's last work.
    """
    trace, rows = of
    call = idle.work.call[np.maximum(gaps.next, 0)] if len(gaps.next) else gaps.next
    linked = np.flatnonzero((gaps.next != NULL) & (call != NULL))
    inside = intervals.inside_ns(gaps.intervals(), windows)
    for host, own in idle.by_thread(call[linked]):
        thread = thread_of(rows, *host.owners[0])
        mine = linked[own]
        mine = mine[inside[mine] > 0]
        if thread == NULL or not len(mine):
            continue
        within = intervals.merge(Intervals(gaps.start[mine], gaps.end[mine]))
        line = timeline(rows, thread, within)
        waits = np.flatnonzero((line.kind == Kind.SYNCHRONISATION) | (line.kind == Kind.COPY_CALL))
        if not len(waits):
            continue
        holder = line.holder[waits]
        ends = rows.end[holder]
        order = np.argsort(ends, kind="stable")
        ends, holder = ends[order], holder[order]
        at = np.searchsorted(ends, gaps.start[mine], side="left")
        found = np.minimum(at, len(ends) - 1)
        follows = (at < len(ends)) & (ends[found] <= gaps.end[mine])
        follows &= rows.start[holder[found]] <= gaps.start[mine]
        for name in distinct(rows.name[holder[found[follows]]]):
            of_name = mine[follows][rows.name[holder[found[follows]]] == name]
            text = trace.strings[int(name)]
            ns, count = opened.get(text, (0, 0))
            opened[text] = ns + int(inside[of_name].sum()), count + len(of_name)


def _after_launch(
    idle: IdleAnalysis,
    stretches: Stretches,
    sets: tuple[Intervals, Intervals],
    times: Times,
    of: tuple[Trace, HostRows],
) -> None:
    """Idle time that the host did not cause: its launching calls had begun. Of a launch in progress
    the host's time is split too, since a stream may wait for what the host did next. `sets` are the
    copies of other engines and the windows.
    """
    elsewhere, windows = sets

    def inside(stretch: Intervals) -> Intervals:
        return intervals.intersect(intervals.merge(stretch), windows)

    times["no_host_record", "", ""] += inside(stretches.unlinked).total
    behind, queued = stretches.behind_wait, inside(stretches.queued)
    for host, own in idle.by_thread(stretches.behind_by):
        held = inside(Intervals(behind.start[own], behind.end[own]))
        _add(times, "waiting_copy_or_event", held, host, of)
    waiting = intervals.intersect(queued, elsewhere)
    times["waiting_copy_or_event", "", ""] += waiting.total
    times["queued_gap", "", ""] += queued.total - waiting.total
    launching = stretches.launching
    for host, own in idle.by_thread(stretches.launched_by):
        within = inside(Intervals(launching.start[own], launching.end[own]))
        moved = intervals.intersect(within, elsewhere)
        times["waiting_copy_or_event", "", ""] += moved.total
        _add(times, "launch_in_progress", intervals.subtract(within, moved), host, of)


def _add(
    times: Times, cause: str, held: Intervals, host: HostThread, of: tuple[Trace, HostRows]
) -> None:
    """Split one set of intervals by what a thread was in; of several threads by the first that has
    anything recorded.
    """
    if not held.total:
        return
    _, rows = of
    numbers = [thread_of(rows, *owner) for owner in host.owners]
    known = [number for number in numbers if number != NULL]
    line = timeline(rows, known[0], held) if known else None
    _add_line(times, cause, held, line, of)


def _add_line(
    times: Times,
    cause: str,
    held: Intervals,
    line: Timeline | None,
    of: tuple[Trace, HostRows],
) -> None:
    trace, rows = of
    recorded = 0
    if line is not None and len(line):
        inside = intervals.inside_ns(line.intervals(), held)
        seen = np.flatnonzero(inside)
        named = rows.name[np.where(_by_inner(line.kind), line.inner, line.holder)[seen]]
        kind = line.kind[seen]
        first, group = first_rows(pack([kind, named]))
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, group, inside[seen])
        for at, ns in zip(first.tolist(), sums.tolist(), strict=True):
            key = cause, Kind(int(kind[at])).key, trace.strings[int(named[at])]
            times[key] += ns
        recorded = int(sums.sum())
    times[cause, Kind.NOTHING.key, ""] += held.total - recorded


def _by_inner(kind: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Which kinds are named by their innermost row: all that no row holds."""
    return kind >= Kind.LAUNCH_CALL


def _parts(times: Times, window_ns: int) -> tuple[HostPart, ...]:
    """The largest first; those beyond the first `KEPT` taken together by cause and kind."""
    present = [(key, ns) for key, ns in times.items() if ns]
    ordered = sorted(present, key=lambda item: (-item[1], item[0]))
    rest, others = Times(), Counter[_Key]()
    for (cause, kind, _), ns in ordered[KEPT:]:
        rest[cause, kind, ""] += ns
        others[cause, kind, ""] += 1
    kept = [(key, ns, 0) for key, ns in ordered[:KEPT]]
    kept += [(key, ns, others[key]) for key, ns in rest.items()]
    return tuple(
        HostPart(cause=key[0], kind=key[1], name=key[2], ns=ns, share=ns / window_ns, others=count)
        for key, ns, count in sorted(kept, key=lambda item: (-item[1], item[0]))
    )
