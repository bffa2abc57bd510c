"""Launches captured as device graphs: which of them a graph can hold, and what a replay leaves.

A replay of a graph takes one launch call. All host work between the launches that it holds is gone:
operators, Python and the calls themselves; on the device its pieces follow each other. What cannot
be captured cuts a graph: a call that waits for the device, with the operator that makes it; a copy
from or to pageable memory; a DataLoader. A new step begins a new graph. Time between two files is
recorded by neither and stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.graph import OTHER, OWN, STREAM, Graph
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.segments import UNEXPLAINED_NS, cut_host
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.timeline import OPS
from profharness.analysis.time.start_up import start_up_calls
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GAP_IN_GRAPH_NS = 1_000
"""Between two pieces of one graph, where the trace holds no graph that says so: on an H100, 72
kernels and memsets that work 276 us in eager mode took 350 us a replay.
"""
_SHORT_GAP_NS = 10_000
_ENOUGH_GAPS = 20
_MOST_STEPS = 100  # back through operators that ended before a call, to the one around it
_PAGEABLE = re.compile("Pageable")
_HANDED = (Role.ENTER, Role.DONE, Role.RESUME)


@dataclass(frozen=True, eq=False)
class Captured:
    """Per host point: `launch` says that a graph holds this launch, `first` that it is the first of
    its graph, `interior` that the time that leads to it lies inside of one, `leaves` that the time
    that leads to it begins at a launch of a graph.
    """

    launch: Mask
    first: Mask
    interior: Mask
    leaves: Mask


def launched_together(graph: Graph, cause: I64, lag: I64) -> None:
    """Make replays of graphs of all launches that a graph can hold."""
    held = captured(graph)
    _drop_room(graph, cause)
    _shorten_host(graph, held, lag)
    _shorten_device(graph, held, lag)


def at_best(graph: Graph, cause: I64, lag: I64) -> None:
    """Lags that no capture can go below: of the host only waiting calls and the DataLoader stay, of
    the device its work, and the shortest latency of any launch once after each of these.
    """
    points, works = graph.points, graph.works
    _drop_room(graph, cause)
    own = lag[OWN, 2 * works :]
    stays = np.isin(points.role, (Role.RETURN, Role.MET)) | (points.before == NULL)
    kept = _inside_edges(graph, (Kind.DATA_LOADER,))
    own[~stays] = np.minimum(own, kept)[~stays]
    resumed = points.role == Role.RESUME
    lag[STREAM, 2 * works :][resumed] = 0
    alone = _alone(graph, kept > 0)
    point = graph.cause[OWN, :works] - 2 * works
    held = point >= 0
    bound = held & (graph.binding[:works] == OWN) & (graph.arrived.call != NULL)
    shortest = int(graph.lag[OWN, :works][bound].min(initial=graph.arrived.latency_ns))
    first = held & alone[np.maximum(point, 0)]
    starts = lag[OWN, :works]
    starts[held] = np.where(first, np.minimum(starts, shortest), 0)[held]
    lag[STREAM, :works] = 0
    lag[OTHER, :works] = 0


def captured(graph: Graph) -> Captured:
    """Which launches of the window graphs can hold, as long graphs as can be."""
    points = graph.points
    launching = np.isin(points.role, (Role.LAUNCH, Role.ROOM))
    launch = launching & ~_not_capturable(graph)
    full = (points.role == Role.CALL) & np.isin(points.call, points.call[points.role == Role.ROOM])
    through = full | np.isin(points.role, _HANDED)
    cut = _inside_edges(graph, (Kind.DATA_LOADER,)) > 0
    begun = np.array([step.start_ns for step in graph.scope.steps], np.int64)
    came = points.time[np.maximum(points.before, 0)]
    cut |= np.searchsorted(begun, points.time, "right") > np.searchsorted(begun, came, "right")
    open_, leaves = np.zeros(len(launch), np.bool_), np.zeros(len(launch), np.bool_)
    holds, passes, cuts = launch.tolist(), through.tolist(), cut.tolist()
    for point, before in enumerate(points.before.tolist()):
        leaves[point] = before != NULL and open_[before]
        open_[point] = holds[point] or (passes[point] and leaves[point] and not cuts[point])
    interior = (launch | through) & leaves & ~cut
    return Captured(launch, launch & ~interior, interior, leaves)


def _drop_room(graph: Graph, cause: I64) -> None:
    """No launch waits for room in the queue."""
    room = np.flatnonzero(graph.points.role == Role.ROOM)
    cause[STREAM, 2 * graph.works + room] = NULL


def _alone(graph: Graph, loads: Mask) -> Mask:
    """Launches that are the first of their thread after a wait, a DataLoader, or the beginning."""
    points = graph.points
    launching = np.isin(points.role, (Role.LAUNCH, Role.ROOM))
    since, alone = np.ones(len(launching), np.bool_), np.zeros(len(launching), np.bool_)
    for point, before in enumerate(points.before.tolist()):
        fresh = before == NULL or bool(since[before]) or bool(loads[point])
        fresh |= points.role[point] == Role.RETURN
        alone[point] = launching[point] and fresh
        since[point] = fresh and not launching[point]
    return alone


def _not_capturable(graph: Graph) -> Mask:
    """Launches of pageable copies, of calls that wait, and of operators that make such a call."""
    points, trace = graph.points, graph.scope.trace
    waiting = points.call[points.role == Role.RETURN]
    found: Mask = np.isin(points.call, waiting) & (points.call != NULL)
    copies = graph.scope.work - graph.scope.records.kernels
    names = trace.strings.decode(trace.copies.name[copies[copies >= 0]])
    pageable = np.zeros(len(copies), np.bool_)
    pageable[copies >= 0] = [_PAGEABLE.search(name) is not None for name in names]
    found |= np.isin(points.call, graph.arrived.call[pageable & (graph.arrived.call != NULL)])
    for thread in np.unique(points.thread).tolist():
        mine = np.flatnonzero(points.thread == thread)
        found[mine] |= intervals.contains(_waiting_operators(graph, thread), points.time[mine])
    return found


def _operators(graph: Graph, thread: int) -> Intervals:
    rows = graph.scope.rows
    mine = (rows.thread == thread) & (rows.table == OPS)
    return Intervals(rows.start[mine], rows.end[mine])


def _waiting_operators(graph: Graph, thread: int) -> Intervals:
    """The innermost operators of a thread that make a call which waits for the device."""
    points, operators = graph.points, _operators(graph, thread)
    order = np.lexsort((-operators.end, operators.start))
    start, end = operators.start[order], operators.end[order]
    returned = (points.role == Role.RETURN) & (points.thread == thread)
    api = graph.scope.records.api
    found = set[int]()
    for at in api.start_ns[points.call[returned]].tolist():
        row = int(np.searchsorted(start, at, "right")) - 1
        for _ in range(_MOST_STEPS):
            if row < 0 or end[row] > at:
                break
            row -= 1
        if row >= 0 and end[row] > at:
            found.add(row)
    rows = sorted(found)
    return intervals.merge(Intervals(start[rows], end[rows]))


def _inside_edges(graph: Graph, kinds: tuple[Kind, ...]) -> I64:
    """How much of the time that leads to each host point is of these kinds, or between files."""
    points = graph.points
    nodes = np.flatnonzero(points.before != NULL)
    held = np.zeros(len(points.time), np.int64)
    start, end = points.time[points.before[nodes]], points.time[nodes]
    held[nodes] = _kept(graph, _threads(graph, nodes), start, end, kinds)
    return held


def _threads(graph: Graph, points: I64) -> I64:
    """The thread whose time leads to each host point."""
    entered = graph.points.role[points] == Role.ENTER
    threads: I64 = np.where(entered, graph.scope.main, graph.points.thread[points])
    return threads


def _kept(graph: Graph, threads: I64, start: I64, end: I64, kinds: tuple[Kind, ...]) -> I64:
    """How much of each stretch of a thread is of these kinds, lies between two files, or in a call
    that loads or creates something: no graph makes that shorter.
    """
    end = np.maximum(start, end)
    stays = intervals.union(_between_files(graph), _start_up(graph))
    kept = intervals.inside_ns(Intervals(start, end), stays)
    for thread in np.unique(threads).tolist():
        mine = np.flatnonzero(threads == thread)
        cut = cut_host(graph.scope, thread, start[mine], end[mine])
        length = np.where(np.isin(cut.kind, kinds), cut.end - cut.start, 0)
        kept[mine] += np.bincount(cut.owner, length, len(mine)).astype(np.int64)
    return kept


def _start_up(graph: Graph) -> Intervals:
    trace = graph.scope.trace
    rows = start_up_calls(trace)
    return intervals.merge(intervals.lasting(trace.api.start_ns[rows], trace.api.dur_ns[rows]))


def _between_files(graph: Graph) -> Intervals:
    """Time of the window that lies between the records of the process's files."""
    scope, trace = graph.scope, graph.scope.trace
    tables = [table for table in (trace.ops, trace.api, trace.kernels) if len(table)]
    starts, ends = [], []
    for number in range(len(trace.sources)):
        rows = [
            (table, np.flatnonzero((table.source == number) & (table.start_ns != NULL)))
            for table in tables
        ]
        rows = [(table, mine) for table, mine in rows if len(mine)]
        if rows:
            starts.append(min(int(table.start_ns[mine].min()) for table, mine in rows))
            ends.append(
                max(int((table.start_ns + table.dur_ns)[mine].max()) for table, mine in rows)
            )
    covered = intervals.merge(intervals.of(starts, ends))
    if not len(covered):
        return intervals.EMPTY
    low, high = max(scope.start, int(covered.start[0])), min(scope.end, int(covered.end[-1]))
    return intervals.complement(covered, low, high)


def _shorten_host(graph: Graph, held: Captured, lag: I64) -> None:
    """The host's time where graphs are replayed: nothing inside of a graph but its launch call; at
    its borders the operators of its first and last launch are gone.
    """
    points = graph.points
    own = lag[OWN, 2 * graph.works :]
    nodes = np.flatnonzero(
        (held.interior | held.leaves | held.launch)
        & (points.before != NULL)
        & ~np.isin(points.role, (Role.RETURN, Role.MET))
    )
    gone = _gone(graph, held, nodes)
    length = points.time[nodes] - points.time[points.before[nodes]]
    call = _launch_call(graph, held, nodes)
    left = np.where(held.interior[nodes], 0, length - gone)
    collecting = _inside_edges(graph, (Kind.GARBAGE_COLLECTION,))[nodes]
    left = np.where(
        held.interior[nodes], np.maximum(call, collecting), left + np.minimum(call, gone)
    )
    own[nodes] = np.minimum(own[nodes], left)
    resumed = held.interior & (points.role == Role.RESUME)
    lag[STREAM, 2 * graph.works :][resumed] = 0


def _launch_call(graph: Graph, held: Captured, nodes: I64) -> I64:
    """How long the launch of a graph takes, for time that leads away from it; 0 elsewhere."""
    points, api = graph.points, graph.scope.records.api
    before = points.before[nodes]
    of_first = held.first[before] & (points.call[before] != NULL)
    found: I64 = np.where(of_first, api.dur_ns[np.maximum(points.call[before], 0)], 0)
    return found


def _gone(graph: Graph, held: Captured, nodes: I64) -> I64:
    """How much of the time that leads to points at the borders of graphs belongs to the outermost
    operators of the launches at its two ends.
    """
    points = graph.points
    threads = _threads(graph, nodes)
    came, at = points.time[points.before[nodes]], points.time[nodes]
    until, since, kept = came.copy(), at.copy(), np.zeros(len(nodes), np.int64)
    lasting = (Kind.DATA_LOADER, Kind.GARBAGE_COLLECTION)
    for thread in np.unique(threads).tolist():
        mine = np.flatnonzero(threads == thread)
        outer = intervals.merge(_operators(graph, thread))
        _, ended = _around(outer, came[mine])
        begun, _ = _around(outer, at[mine])
        until[mine] = np.where(held.leaves[nodes[mine]], np.minimum(ended, at[mine]), came[mine])
        since[mine] = np.where(held.launch[nodes[mine]], np.maximum(begun, until[mine]), at[mine])
        waiting = _waiting_operators(graph, thread)
        for start, end in ((came[mine], until[mine]), (since[mine], at[mine])):
            kept[mine] += intervals.inside_ns(Intervals(start, end), waiting)
    kept += _kept(graph, threads, came, until, lasting) + _kept(graph, threads, since, at, lasting)
    gone: I64 = np.maximum(until - came + at - since - kept, 0)
    return gone


def _around(merged: Intervals, at: I64) -> tuple[I64, I64]:
    """Start and end of the interval around each instant; the instant itself where there is none."""
    if not len(merged):
        return at, at
    place = np.maximum(np.searchsorted(merged.start, at, "right") - 1, 0)
    inside = (merged.start[place] <= at) & (at < merged.end[place])
    return np.where(inside, merged.start[place], at), np.where(inside, merged.end[place], at)


def _shorten_device(graph: Graph, held: Captured, lag: I64) -> None:
    """Pieces behind the first of a graph have no latency of their own, and short gaps."""
    works, arrived = graph.works, graph.arrived
    point = np.maximum(graph.cause[OWN, :works] - 2 * works, 0)
    launched = (graph.cause[OWN, :works] != NULL) & (arrived.call != NULL)
    later = launched & held.launch[point] & ~held.first[point]
    own = lag[OWN, :works]
    own[later] = np.maximum(own - arrived.latency_ns, 0)[later]
    gap = _gap_in_graph(graph)
    for column in (STREAM, OTHER):
        came = graph.cause[column, :works]
        measured = graph.time[:works] - graph.time[np.maximum(came, 0)]
        dependent = later & (came != NULL) & (lag[column, :works] <= UNEXPLAINED_NS)
        lag[column, :works][dependent] = np.minimum(measured, gap)[dependent]


def _gap_in_graph(graph: Graph) -> int:
    """The usual gap between pieces of one graph's launch on a stream, where the trace holds some;
    else that of an H100, or the usual one between launches where that is shorter.
    """
    arrived = graph.arrived
    before = np.maximum(arrived.before, 0)
    together = (arrived.before != NULL) & (arrived.call != NULL)
    together &= arrived.call == arrived.call[before] if len(before) else together
    gaps = (arrived.start - arrived.end[before])[together] if len(before) else arrived.start
    gaps = gaps[gaps <= _SHORT_GAP_NS]
    if len(gaps) >= _ENOUGH_GAPS:
        return int(np.median(gaps))
    return min(GAP_IN_GRAPH_NS, arrived.gap_ns or GAP_IN_GRAPH_NS)
