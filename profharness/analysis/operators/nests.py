"""How operators nest: what holds what, which level of a nest stands for it, sums over what lies
inside.

All functions are of rows of `Trace.ops`, are exact, and look at each level of nesting once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops
from profharness.trace.nesting import Nesting, nest

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Nests:
    """Per operator the row of the one that holds it on its thread, NULL for none; `levels` are the
    rows by depth, the outermost first.
    """

    parent: I64
    levels: tuple[I64, ...]

    def inward(self) -> Iterator[tuple[I64, I64]]:
        """Rows that lie inside of another, and the rows of those; outermost first."""
        for rows in self.levels[1:]:
            inner = rows[self.parent[rows] != NULL]
            yield inner, self.parent[inner]

    def outward(self) -> Iterator[tuple[I64, I64]]:
        """The same, innermost first."""
        for rows in reversed(self.levels[1:]):
            inner = rows[self.parent[rows] != NULL]
            yield inner, self.parent[inner]

    def nearest(self, marked: Mask) -> I64:
        """Per row the innermost marked one among itself and those that hold it; NULL for none."""
        nearest = np.where(marked, np.arange(len(marked)), NULL)
        for inner, holder in self.inward():
            nearest[inner] = np.where(marked[inner], inner, nearest[holder])
        return nearest

    def inside(self, marked: Mask) -> Mask:
        """Which rows lie inside of a marked one, itself not counted."""
        inside: Mask = np.zeros(len(marked), np.bool_)
        for inner, holder in self.inward():
            inside[inner] = inside[holder] | marked[holder]
        return inside

    def with_inner(self, values: I64) -> I64:
        """Per row the sum of a value over itself and everything inside of it."""
        total = values.copy()
        for inner, holder in self.outward():
            np.add.at(total, holder, total[inner])
        return total

    def standing(self, known: Mask, whole: Mask) -> Mask:
        """Which rows stand for their nest, so that its work counts once: the innermost `known`
        ones; a known one that is also `whole` stands for everything inside of it.
        """
        below = np.zeros(len(known), np.bool_)  # something inside of the row stands
        standing = known.copy()
        for rows in reversed(self.levels):
            standing[rows] &= ~below[rows] | whole[rows]
            inner = rows[(standing[rows] | below[rows]) & (self.parent[rows] != NULL)]
            below[self.parent[inner]] = True
        return standing & ~self.inside(standing & whole)


def nests(ops: Ops) -> Nests:
    """The nests of these operators; worked out once for a table."""

    def make() -> Nests:
        nested = nest(ops.start_ns, ops.dur_ns, pack([ops.source, ops.pid, ops.tid]))
        depth, parent = _with_replays(ops, nested)
        order = np.argsort(depth, kind="stable")
        cuts = np.flatnonzero(np.diff(depth[order])) + 1
        return Nests(parent, tuple(np.split(order, cuts)) if len(order) else ())

    return ops.kept(nests, (), make)


def _with_replays(ops: Ops, nested: Nesting) -> tuple[I64, I64]:
    """Depth and parent of each operator. Those that a graph replay ran took no time on the host:
    their order and depth say how they nest, inside of what launched the graph.
    """
    depth, parent = nested.depth.astype(np.int64), nested.parent
    rows = np.flatnonzero(ops.replay != NULL)
    if not len(rows):
        return depth, parent
    parent = parent.copy()
    replay = pack([ops.source[rows], ops.replay[rows]])
    begins = np.concatenate(([True], replay[1:] != replay[:-1]))
    first = rows[np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))]
    local = ops.depth[rows].astype(np.int64) - ops.depth[first]
    depth[rows] = depth[first] + local
    for level in range(1, int(local.max()) + 1):
        inner, outer = np.flatnonzero(local == level), np.flatnonzero(local == level - 1)
        holder = outer[np.searchsorted(outer, inner) - 1]
        parent[rows[inner]] = np.where(replay[holder] == replay[inner], rows[holder], NULL)
    return depth, parent
