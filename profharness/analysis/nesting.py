"""Which operator holds which: parents and own time of nested spans per thread, vectorised."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from profharness.analysis.grouping import pack
from profharness.trace.model import NULL, Ops

I64 = npt.NDArray[np.int64]


def own_ns(ops: Ops) -> I64:
    """Each operator's duration less the parts that its direct children cover, in ns; never negative.

    A child that sticks out of its parent (rounded times) is taken only as far as it lies inside.
    """
    parent = parents(ops)
    child = np.flatnonzero(parent != NULL)
    end = ops.start_ns + ops.dur_ns
    holder = parent[child]
    covered = np.minimum(end[child], end[holder]) - np.maximum(ops.start_ns[child], ops.start_ns[holder])
    taken = np.zeros(len(ops), np.int64)
    np.add.at(taken, holder, np.maximum(covered, 0))
    return np.maximum(ops.dur_ns - taken, 0)


def parents(ops: Ops) -> I64:
    """The row of the operator that directly holds each one, NULL for the outermost of a thread.

    Depths are taken from the reader where it gave them all, else found from the times.
    """
    parent = np.full(len(ops), NULL, np.int64)
    if not len(ops):
        return parent
    thread = pack([ops.source, ops.pid, ops.tid])
    order = np.lexsort((ops.depth, -ops.dur_ns, ops.start_ns, thread))
    threads = thread[order]
    depth = ops.depth[order].astype(np.int64)
    if np.any(depth == NULL):
        depth = _depths(threads, ops.start_ns[order], ops.dur_ns[order])
    for level in range(1, int(depth.max()) + 1):
        here, above = np.flatnonzero(depth == level), np.flatnonzero(depth == level - 1)
        before = np.searchsorted(above, here) - 1
        same = (before >= 0) & (threads[above[np.maximum(before, 0)]] == threads[here])
        parent[order[here[same]]] = order[above[before[same]]]
    return parent


def _depths(threads: I64, start: I64, dur: I64) -> I64:
    """Depth of properly nested spans, sorted by thread, start and falling duration: how many earlier ones are still open."""
    depth = np.empty(len(threads), np.int64)
    edges = np.append(np.flatnonzero(np.concatenate(([True], threads[1:] != threads[:-1]))), len(threads))
    for first, last in pairwise(edges):
        ends = np.sort(start[first:last] + dur[first:last])
        closed = np.searchsorted(ends, start[first:last], "right")
        # Empty spans count as closed at their own start though none of them came before: never below zero.
        depth[first:last] = np.maximum(np.arange(last - first) - closed, 0)
    return depth
