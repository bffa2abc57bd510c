"""A graph in which each call of a site takes another time: its host time, and the device work that
it launched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.changes import Changed, own_edges, threads_of
from profharness.analysis.critical.graph import OWN, Graph
from profharness.analysis.critical.segments import cut_host, tiled
from profharness.analysis.critical.sites import SiteCosts
from profharness.trace.columns.table import NULL

F64 = npt.NDArray[np.float64]


def resized(graph: Graph, costs: SiteCosts, host: F64, device: F64) -> Changed:
    """The graph with times multiplied by site: `host` and `device` are factors, one per site."""
    lag, works = graph.lag.copy(), graph.works
    ends = slice(works, 2 * works)
    lag[OWN, ends] = np.rint(lag[OWN, ends] * device[costs.site_of_work]).astype(np.int64)
    nodes = own_edges(graph)
    threads = threads_of(graph, nodes)
    for thread in np.unique(threads).tolist():
        mine = nodes[threads == thread]
        cut = cut_host(graph.scope, thread, graph.time[graph.cause[OWN, mine]], graph.time[mine])
        inner = tiled(graph.scope, thread).inner[cut.stretch]
        site = np.where(inner == NULL, 0, costs.site_of_row[np.maximum(inner, 0)])
        more = (cut.end - cut.start) * (host[site] - 1)
        lag[OWN, mine] += np.rint(np.bincount(cut.owner, more, len(mine))).astype(np.int64)
    touched = int((lag != graph.lag).any(axis=0).sum())
    return Changed(graph.cause, lag, touched)
