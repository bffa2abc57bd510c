"""What a change is worth: the window as a rerun of the changed graph gives it, and what limits it
then.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.critical import classes
from profharness.analysis.critical.changes import Change, Changed, apply, best_case
from profharness.analysis.critical.graph import OWN, STREAM, Graph
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.records import NO_CHANGE, Forecast
from profharness.analysis.critical.rerun import Rerun, path_nodes, rerun
from profharness.analysis.critical.segments import cut_host, waiting_since, work_classes
from profharness.analysis.critical.walk import Edges, path_of
from profharness.analysis.host.kinds import Kind

I64 = npt.NDArray[np.int64]


def unchanged(graph: Graph) -> Forecast:
    """The rerun of no change: its residual is the check of the graph."""
    run = rerun(graph, graph.cause, graph.lag)
    return _forecast(graph, NO_CHANGE, Changed(graph.cause, graph.lag, 0), run, 0)


def forecast(
    graph: Graph, change: Change, residual_ns: int, came_last: Mapping[int, int] = {}
) -> Forecast:
    """What the change makes of the window; `residual_ns` is what the rerun of no change missed,
    and `came_last` is for `changes.apply`.
    """
    changed = apply(graph, change, came_last)
    run = rerun(graph, changed.cause, changed.lag)
    made = _forecast(graph, change.text, changed, run, residual_ns)
    best = best_case(graph, change, changed)
    if best is not None:
        least = rerun(graph, best.cause, best.lag).window_ns
        made = msgspec.structs.replace(made, at_most_ns=made.window_ns - least)
    return made


def _forecast(graph: Graph, text: str, changed: Changed, run: Rerun, residual_ns: int) -> Forecast:
    window = graph.scope.window_ns
    limit, held = _next_limit(graph, changed, run)
    return Forecast(
        change=text,
        window_ns=window,
        forecast_ns=run.window_ns,
        steps=len(graph.scope.steps),
        at_most_ns=_at_most(graph, changed),
        next_limit=limit,
        next_limit_share=held / run.window_ns if run.window_ns else 0.0,
        touched=changed.touched,
        residual_ns=run.window_ns - window if text == NO_CHANGE else residual_ns,
    )


def _at_most(graph: Graph, changed: Changed) -> int | None:
    """The time that a change takes from the measured path: it gains no more. None where it takes
    causes away.
    """
    if (changed.cause != graph.cause).any():
        return None
    edges = path_of(graph)
    before = graph.lag[edges.column, edges.node]
    after = changed.lag[edges.column, edges.node]
    return int(np.maximum(before - after, 0).sum())


def _next_limit(graph: Graph, changed: Changed, run: Rerun) -> tuple[str, int]:
    """The class that holds most of the path of the rerun, and its time on it. The host's own time
    is divided as it was measured.
    """
    nodes = path_nodes(run, changed.cause)
    column = run.binding[nodes]
    came = changed.cause[column, nodes]
    nodes, column, came = nodes[came >= 0], column[came >= 0], came[came >= 0]
    length = run.time[nodes] - run.time[came]
    keep = length > 0
    edges = Edges(
        nodes[keep], came[keep], column[keep], graph.time[came[keep]], graph.time[nodes[keep]]
    )
    totals = np.zeros(len(classes.KEYS), np.int64)
    on_host = (edges.node >= 2 * graph.works) & (edges.column == OWN)
    _add_host(graph, edges, on_host, length[keep], totals)
    other = ~on_host
    kinds = _device_kinds(graph, edges)
    np.add.at(totals, kinds[other], length[keep][other])
    largest = int(np.argmax(totals))
    return classes.KEYS[largest], int(totals[largest])


def _device_kinds(graph: Graph, edges: Edges) -> I64:
    """The class of each edge that is not the host's own time."""
    works = graph.works
    running = work_classes(graph.scope)
    is_start, is_end = edges.node < works, (edges.node >= works) & (edges.node < 2 * works)
    kinds = np.where(edges.column == OWN, classes.LAUNCH_LATENCY, classes.EVENT_WAIT)
    kinds = np.where(edges.column == STREAM, classes.STREAM_GAP, kinds)
    if works:
        kinds = np.where(is_end, running[np.where(is_end, edges.node - works, 0)], kinds)
    found: I64 = np.where(is_start | is_end, kinds, classes.SYNC_RETURN)
    resumed = graph.points.role[np.maximum(edges.node - 2 * works, 0)] == Role.RESUME
    return np.where(~is_start & ~is_end & resumed, Kind.RANGE, found)


def _add_host(
    graph: Graph, edges: Edges, rows: npt.NDArray[np.bool_], length: I64, totals: I64
) -> None:
    """Add the host's own time by class, each edge's as it was divided when it was measured."""
    points, works = graph.points, graph.works
    point = np.maximum(edges.node - 2 * works, 0)
    thread = np.where(points.role[point] == Role.ENTER, graph.scope.main, points.thread[point])
    until = edges.end.copy()
    until[rows] = waiting_since(graph, edges, np.flatnonzero(rows))
    waits = rows & (until < edges.end)
    own = np.where(waits, np.minimum(length, until - edges.start), length)
    totals[classes.COLLECTIVE] += int((length - own)[waits].sum())
    for number in np.unique(thread[rows]).tolist():
        mine = np.flatnonzero(rows & (thread == number) & (until > edges.start))
        cut = cut_host(graph.scope, number, edges.start[mine], until[mine])
        ratio = own[mine] / (until[mine] - edges.start[mine])
        parts = (cut.end - cut.start) * ratio[cut.owner]
        np.add.at(totals, cut.kind, np.rint(parts).astype(np.int64))
