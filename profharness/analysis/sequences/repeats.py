"""Words that recur in a row of codes: maximal repeats by a suffix array.

A repeat is kept if it cannot be made longer to the left or right in all of its places. One that
follows itself, such as two layers of a stack, is replaced by its shortest part that does (its
period), so that what is found repeats without sharing a place. All is exact up to the length that
is asked for; beyond the bounds on the number of repeats the ones that cover least are left out.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import coded
from profharness.trace.model import I64

Mask = npt.NDArray[np.bool_]

_NODES, _PLACES = 3_000, 4_000_000
"""Repeats that are looked at, and places of them together, those that cover most first."""


@dataclass(frozen=True, eq=False)
class Repeat:
    """A word of so many codes, and where it begins: in rising order, without sharing a code."""

    length: int
    starts: I64


@dataclass(eq=False)
class _Sorted:
    """All suffixes in order of their first codes, and how many codes neighbours have in common."""

    order: I64
    common: I64
    _low: dict[int, I64] = field(default_factory=dict)

    def around(self, at: int, length: int) -> tuple[int, int]:
        """The first and last place in the order of the suffixes that share so many codes with the
        one at this place.
        """
        if length not in self._low:
            self._low[length] = np.flatnonzero(self.common < length)
        low = self._low[length]
        after = int(np.searchsorted(low, at))
        last = int(low[after]) if after < len(low) else len(self.common)
        first = int(low[after - 1]) + 1 if after else 0
        return first, last


def repeats(codes: I64, shortest: int, longest: int) -> list[Repeat]:
    """The words of `shortest` to `longest` codes that occur twice or more without overlap, those
    that cover most first. A code that occurs once ends all words.
    """
    if len(codes) < 2:
        return []
    suffixes = _sorted(codes, longest)
    lengths, left, right = _nodes(suffixes, codes)
    cover = lengths * (right - left + 1)
    ranked = np.lexsort((left, -lengths, -cover))
    found: dict[tuple[int, int], Repeat] = {}
    places = 0
    for node in ranked[:_NODES].tolist():
        places += int(right[node] - left[node]) + 1
        if places > _PLACES:
            break
        at, repeat = _without_overlap(suffixes, int(left[node]), int(lengths[node]))
        key = (repeat.length, at)
        if key not in found and repeat.length >= shortest and len(repeat.starts) > 1:
            found[key] = repeat
    return list(found.values())


def _sorted(codes: I64, longest: int) -> _Sorted:
    """By doubling: ranks by the first 1, 2, 4 ... codes, until they reach the longest word."""
    count = len(codes)
    ranks = [(1, coded(codes)[1])]
    while ranks[-1][0] < longest and int(ranks[-1][1].max()) + 1 < count:
        length, rank = ranks[-1]
        following = np.zeros(count, np.int64)
        if length < count:
            following[:-length] = rank[length:] + 1
        ranks.append((2 * length, coded(rank * (count + 1) + following)[1]))
    order = np.argsort(ranks[-1][1], kind="stable")
    one, other = order[:-1].copy(), order[1:].copy()
    common = np.zeros(count - 1, np.int64)
    for length, rank in reversed(ranks):
        inside = (one < count) & (other < count)
        same = inside & (rank[np.minimum(one, count - 1)] == rank[np.minimum(other, count - 1)])
        for column in (common, one, other):
            column[same] += length
    return _Sorted(order, np.minimum(common, longest))


def _nodes(suffixes: _Sorted, codes: I64) -> tuple[I64, I64, I64]:
    """Words that cannot be made longer to the right: their lengths, and the first and last place in
    the order; without those that all have the same code before them.
    """
    lengths, left, right = array("q"), array("q"), array("q")
    stack: list[tuple[int, int]] = []
    for place, common in enumerate([*suffixes.common.tolist(), 0]):
        first = place
        while stack and stack[-1][0] > common:
            length, first = stack.pop()
            if length > 1:
                lengths.append(length)
                left.append(first)
                right.append(place)
        if common and (not stack or stack[-1][0] < common):
            stack.append((common, first))
    columns = [np.array(column, np.int64) for column in (lengths, left, right)]
    before = np.where(suffixes.order > 0, codes[suffixes.order - 1], codes.min() - 1)
    changes = np.concatenate(([0], np.cumsum(np.diff(before) != 0)))
    diverse = changes[columns[2]] > changes[columns[1]]
    return columns[0][diverse], columns[1][diverse], columns[2][diverse]


def _without_overlap(suffixes: _Sorted, left: int, length: int) -> tuple[int, Repeat]:
    """The word at this place of the order, or its period where it follows itself, and where it
    begins; with the first place of the order that has it.
    """
    while True:
        first, last = suffixes.around(left, length)
        starts = np.sort(suffixes.order[first : last + 1])
        nearest = int(np.diff(starts).min()) if len(starts) > 1 else length
        if nearest >= length:
            return first, Repeat(length, starts)
        if nearest < 2:
            return first, Repeat(length, apart(starts, length))
        length = nearest


def apart(starts: I64, length: int) -> I64:
    """The first of these places, then always the next one that overlaps with none before."""
    kept, free = array("q"), -1
    for start in starts.tolist():
        if start >= free:
            kept.append(start)
            free = start + length
    return np.array(kept, np.int64)
