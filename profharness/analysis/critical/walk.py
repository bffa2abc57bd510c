"""The path through a graph: backwards from the last end, always to the cause that arrived last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.graph import Graph
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a path in order of time: each from a cause to the `node` that it bound, over
    `column` of the causes. They touch, and reach from the window's start to its end.
    """

    node: I64
    cause: I64
    column: I64
    start: I64
    end: I64


def path_of(graph: Graph) -> Edges:
    """The path from the start of the window to its last end."""
    bound = np.take_along_axis(graph.cause, graph.binding[None, :].astype(np.int64), axis=0)[0]
    causes: list[int] = bound.tolist()
    nodes, node = [], graph.last
    while node != NULL:
        nodes.append(node)
        node = causes[node]
    line = np.array(nodes[::-1], np.int64)
    later, earlier = line[1:], line[:-1]
    start, end = graph.time[earlier], graph.time[later]
    keep = end > start
    return Edges(
        later[keep],
        earlier[keep],
        graph.binding[later[keep]].astype(np.int64),
        start[keep],
        end[keep],
    )
