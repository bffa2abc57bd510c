"""The path as segments with classes and names: device work by kernel, the host by what it was in.

Segments touch and reach over the whole window, so that their lengths sum to it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical import classes
from profharness.analysis.critical.graph import OTHER, OWN, STREAM, Graph
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.scope import Scope
from profharness.analysis.critical.walk import Edges
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.timeline import Timeline, timeline
from profharness.analysis.time.timeline import is_communication
from profharness.stats import intervals
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
HOST, DEVICE = 0, 1
UNEXPLAINED_NS = 1_000_000
"""Work that starts later than this after its launch, or after the work before it, waited: for an
event, or for work that is not in the file.
"""


@dataclass(frozen=True, eq=False)
class Segments:
    """In order of time. `kind` is a code of `classes.KEYS`; `name` and `operator` are codes of the
    trace's strings (NULL: none). `place` says whether a segment is the host's; `where` is a thread
    of the host rows then, a position in `Scope.work` else.
    """

    start: I64
    end: I64
    kind: I64
    name: I64
    operator: I64
    place: I64
    where: I64

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> I64:
        return self.end - self.start


def columns_of(found: Segments) -> tuple[I64, ...]:
    """The columns of segments, in the order of their fields."""
    return tuple(getattr(found, column.name) for column in fields(found))


def segments_of(graph: Graph, edges: Edges) -> Segments:
    """The segments of a path."""
    host_edge = (edges.node >= 2 * graph.works) & ~_is_return(graph, edges)
    parts = [_of_device(graph, edges, np.flatnonzero(~host_edge))]
    on_host = np.flatnonzero(host_edge)
    threads = _threads(graph, edges, on_host)
    began = waiting_since(graph, edges, on_host)
    parts.append(_of_collectives(graph, edges, on_host, began))
    for thread in np.unique(threads).tolist():
        mine = threads == thread
        start, end = edges.start[on_host[mine]], began[mine]
        parts.append(_of_host(graph.scope, thread, start[end > start], end[end > start]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Segments(*(column[order] for column in columns))


def waiting_since(graph: Graph, edges: Edges, rows: I64) -> I64:
    """Where each host edge turns into waiting for a collective on the CPU: its end for all that do
    not.
    """
    begun = graph.points.waits_from[edges.node[rows] - 2 * graph.works]
    start, end = edges.start[rows], edges.end[rows]
    turns: I64 = np.where(begun == NULL, end, np.clip(begun, start, end))
    return turns


def _of_collectives(graph: Graph, edges: Edges, rows: I64, began: I64) -> Columns:
    """The waiting of the main thread for collectives on the CPU."""
    waiting = began < edges.end[rows]
    rows, began = rows[waiting], began[waiting]
    mark = graph.points.mark[edges.node[rows] - 2 * graph.works]
    none = np.full(len(rows), NULL, np.int64)
    return (
        began,
        edges.end[rows],
        np.full(len(rows), classes.COLLECTIVE, np.int64),
        graph.scope.trace.marks.name[mark].astype(np.int64),
        none,
        np.full(len(rows), HOST, np.int64),
        np.full(len(rows), graph.scope.main, np.int64),
    )


def _is_return(graph: Graph, edges: Edges) -> npt.NDArray[np.bool_]:
    """Which edges lead from device work to the return of the call that waited for it."""
    point = np.maximum(edges.node - 2 * graph.works, 0)
    found: npt.NDArray[np.bool_] = (
        (edges.node >= 2 * graph.works)
        & (edges.column == STREAM)
        & (graph.points.role[point] != Role.RESUME)
    )
    return found


def _threads(graph: Graph, edges: Edges, rows: I64) -> I64:
    """The thread whose time each host edge is: the one that came, the main thread's where it was
    handed over or went on.
    """
    point = edges.node[rows] - 2 * graph.works
    threads: I64 = np.where(
        graph.points.role[point] == Role.ENTER, graph.scope.main, graph.points.thread[point]
    )
    return threads


Columns = tuple[I64, I64, I64, I64, I64, I64, I64]


def _of_device(graph: Graph, edges: Edges, rows: I64) -> Columns:
    """Edges that end at device work, or at the return of a call that waited for it."""
    scope, arrived, works = graph.scope, graph.arrived, graph.works
    node, column = edges.node[rows], edges.column[rows]
    is_start, is_end = node < works, (node >= works) & (node < 2 * works)
    position = np.where(is_start, node, np.where(is_end, node - works, edges.cause[rows] - works))
    of_work = work_classes(scope)[position]
    from_start = edges.cause[rows] == 2 * works
    launched = arrived.call[position] != NULL
    late = edges.end[rows] - edges.start[rows] > UNEXPLAINED_NS
    before = np.where(late & launched, classes.EVENT_WAIT, classes.LAUNCH_LATENCY)
    before = np.where(from_start & ~launched, Kind.NOTHING, before)
    gap = np.select(
        [column == OWN, column == STREAM, column == OTHER],
        [before, np.where(late, classes.EVENT_WAIT, classes.STREAM_GAP), classes.EVENT_WAIT],
    )
    kind = np.where(is_start, gap, np.where(is_end, of_work, classes.SYNC_RETURN))
    name, operator = work_names(scope)
    name, operator = name[position], operator[position]
    point = np.maximum(node - 2 * works, 0)
    returning = ~is_start & ~is_end
    calls = scope.trace.api.name
    if returning.any():
        name = np.where(returning, calls[np.maximum(graph.points.call[point], 0)], name)
        operator = np.where(returning, NULL, operator)
    place = np.where(returning, HOST, DEVICE)
    where = np.where(returning, graph.points.thread[point], position)
    return edges.start[rows], edges.end[rows], kind, name, operator, place, where


def work_classes(scope: Scope) -> I64:
    """The class of each piece of work while it runs: kernel, collective or copy."""
    kernels = scope.records.kernels
    talking = is_communication(scope.trace.strings, scope.trace.kernels)
    is_kernel = scope.work < kernels
    of_kernel = np.full(len(scope.work), classes.COPY, np.int64)
    rows = scope.work[is_kernel]
    of_kernel[is_kernel] = np.where(talking[rows], classes.COLLECTIVE, classes.KERNEL)
    return of_kernel


def work_names(scope: Scope) -> tuple[I64, I64]:
    """The name of each piece of work, and that of the operator that launched it."""
    trace = scope.trace
    name = np.concatenate((trace.kernels.name, trace.copies.name))[scope.work].astype(np.int64)
    op = work_operators(scope)
    if not len(trace.ops):
        return name, np.full(len(name), NULL, np.int64)
    operator = np.where(op == NULL, NULL, trace.ops.name[np.maximum(op, 0)]).astype(np.int64)
    return name, operator


def work_operators(scope: Scope) -> I64:
    """The row of the operator that launched each piece of work; NULL for none."""
    trace = scope.trace
    rows: I64 = np.concatenate((trace.kernels.op, trace.copies.op))[scope.work].astype(np.int64)
    return rows


def _of_host(scope: Scope, thread: int, start: I64, end: I64) -> Columns:
    """Stretches of one thread, cut where what the thread was in changes."""
    cut = cut_host(scope, thread, start, end)
    holder = tiled(scope, thread).holder[cut.stretch]
    names = scope.rows.name
    held = np.where(holder == NULL, NULL, names[np.maximum(holder, 0)]).astype(np.int64)
    rows = len(cut.stretch)
    return (
        cut.start,
        cut.end,
        cut.kind,
        held,
        np.full(rows, NULL, np.int64),
        np.full(rows, HOST, np.int64),
        np.full(rows, thread, np.int64),
    )


@dataclass(frozen=True, eq=False)
class Cut:
    """Parts of stretches of a thread's time: `owner` is the stretch that a part lies in, `stretch`
    the row of the thread's timeline.
    """

    owner: I64
    start: I64
    end: I64
    stretch: I64
    kind: I64


def cut_host(scope: Scope, thread: int, start: I64, end: I64) -> Cut:
    """Each stretch from `start` to `end` of a thread, cut where what the thread was in changes.
    They may lie in any order, inside of the window.
    """
    line = tiled(scope, thread)
    first = np.searchsorted(line.end, start, "right")
    count = np.maximum(np.searchsorted(line.start, end, "left") - first, 0)
    owner = np.repeat(np.arange(len(start)), count)
    stretch = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return Cut(
        owner,
        np.maximum(start[owner], line.start[stretch]),
        np.minimum(end[owner], line.end[stretch]),
        stretch,
        line.kind[stretch].astype(np.int64),
    )


def tiled(scope: Scope, thread: int) -> Timeline:
    """The thread's timeline over the window without holes: where nothing is recorded, a stretch
    says so.
    """
    if thread not in scope.lines:
        scope.lines[thread] = _tiled(scope, thread)
    return scope.lines[thread]


def _tiled(scope: Scope, thread: int) -> Timeline:
    line = timeline(scope.rows, thread, intervals.window(scope.start, scope.end))
    start, end = np.maximum(line.start, scope.start), np.minimum(line.end, scope.end)
    keep = end > start
    start, end = start[keep], end[keep]
    borders = np.concatenate(([scope.start], end)), np.concatenate((start, [scope.end]))
    free = borders[1] > borders[0]
    holes = int(free.sum())
    nothing = np.full(holes, NULL, np.int64)
    columns = [
        np.concatenate((recorded, empty))
        for recorded, empty in (
            (start, borders[0][free]),
            (end, borders[1][free]),
            (line.kind[keep], np.full(holes, Kind.NOTHING, np.int8)),
            (line.holder[keep], nothing),
            (line.inner[keep], nothing),
        )
    ]
    order = np.argsort(columns[0], kind="stable")
    return Timeline(*(column[order] for column in columns))
