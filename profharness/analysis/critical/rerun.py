"""A graph run forward with other lags: every node comes when the last of its causes has arrived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.graph import Graph
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rerun:
    """Times of the nodes of a graph, which cause bound each, and the length of the window, in
    ns.
    """

    time: I64
    binding: I64
    window_ns: int
    last: int


def rerun(graph: Graph, cause: I64, lag: I64) -> Rerun:
    """The times that these causes and lags give; those of the graph itself give its own times."""
    order = graph.order.tolist()
    start = graph.scope.start
    columns = [column.tolist() for column in (*cause, *lag)]
    time, binding = [start] * len(order), [0] * len(order)
    first, second, third, own_lag, second_lag, third_lag = columns
    for node in order:
        at, bound = start, 0
        source = first[node]
        if source >= 0:
            at = time[source] + own_lag[node]
        source = second[node]
        if source >= 0 and time[source] + second_lag[node] >= at:
            at, bound = time[source] + second_lag[node], 1
        source = third[node]
        if source >= 0 and time[source] + third_lag[node] > at:
            at, bound = time[source] + third_lag[node], 2
        time[node], binding[node] = at, bound
    times = np.array(time, np.int64)
    last = _last(graph, times)
    return Rerun(times, np.array(binding, np.int64), int(times[last]) - start, last)


def _last(graph: Graph, time: I64) -> int:
    """The node that ends the window: the main thread's last point, or the last end of work that the
    window's steps launched.
    """
    host = 2 * graph.works + graph.points.last
    ending = graph.works + np.flatnonzero(graph.scope.ending)
    if not len(ending):
        return host
    work = int(ending[np.argmax(time[ending])])
    return work if graph.scope.ends_on_device or time[work] > time[host] else host


def path_nodes(run: Rerun, cause: I64) -> I64:
    """The nodes on the path of a rerun, from its last end backwards to the window's start."""
    bound = np.take_along_axis(cause, run.binding[None, :], axis=0)[0].tolist()
    nodes, node = [], run.last
    while node != NULL:
        nodes.append(node)
        node = bound[node]
    return np.array(nodes, np.int64)
