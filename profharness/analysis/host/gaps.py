"""Which sample speaks for which part of the time between a thread's operators.

A gap is a stretch of time in which no operator of the thread runs. Samples are rarer than gaps, so
that the distance of two samples usually reaches over several of them. What a sample saw holds for
the gap that it lies in; whoever was seen next was seen elsewhere. A line that sleeps until the next
operator begins would else lose its tail to the line that is sampled next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Gaps:
    """A merged set of intervals; gaps with the same number in `alike` lie between the same
    operators (NULL: not known).
    """

    held: Intervals
    alike: I64


@dataclass(frozen=True, eq=False)
class Pieces:
    """Parts of gaps, in ns: the `sample` that speaks for each, whether it lies in the gap (`hit`)
    or is only the nearest, the sample that ends the time it lies in (`until`), and its `gap`.
    """

    sample: I64
    hit: npt.NDArray[np.bool_]
    until: I64
    gap: I64
    ns: I64


def pieces(at: I64, since: I64, late: I64, held: Intervals) -> Pieces:
    """The gaps in the time that the samples tell of, which for sample i + 1 begins at `since[i]`.

    Of the time between two samples in one gap each has the half nearer to it, the second also its
    delay `late`: native code that holds the interpreter makes a sampler late, and the line that it
    then sees called that code. Where only one of the two lies in the gap, it has all of it, but for
    the delay. A gap without a sample goes to the nearest one.
    """
    until, gap, low, high = _crossed(since, at[1:], held)
    until = until + 1
    within = _gap_of(at, held)
    left, right = within[until - 1] == gap, within[until] == gap
    begun = np.maximum(at[until] - late[until], at[until - 1])
    half = (at[until - 1] + begun) // 2
    turn = np.where(left == right, half, np.where(left, begun, low))
    whole = ~left & ~right
    turn = np.where(whole, np.where((low + high) // 2 < half, high, low), turn)
    turn = np.clip(turn, low, high)
    ns = np.concatenate([turn - low, high - turn])
    some = ns > 0
    return Pieces(
        np.concatenate([until - 1, until])[some],
        np.concatenate([left | right, left | right])[some],
        np.concatenate([until, until])[some],
        np.concatenate([gap, gap])[some],
        ns[some],
    )


def shared(ns: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in the ratio of the weights that sum to `ns`."""
    total, edges, run = sum(weights), [0], 0
    for weight in weights:
        run += weight
        edges.append(ns * run // total)
    return [high - low for low, high in pairwise(edges)]


def _gap_of(at: I64, held: Intervals) -> I64:
    """The number of the gap that each moment lies in; NULL for none."""
    if not len(held):
        return np.full(len(at), NULL, np.int64)
    place = np.searchsorted(held.start, at, "right") - 1
    inside = (place >= 0) & (at <= held.end[np.maximum(place, 0)])
    return np.where(inside, place, NULL)


def _crossed(start: I64, end: I64, held: Intervals) -> tuple[I64, I64, I64, I64]:
    """Where rising intervals and gaps meet: both numbers, and from when until when."""
    first = np.searchsorted(held.end, start, "right")
    count = np.maximum(np.searchsorted(held.start, end, "left") - first, 0)
    owner = np.repeat(np.arange(len(start)), count)
    gap = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return (
        owner,
        gap,
        np.maximum(start[owner], held.start[gap]),
        np.minimum(end[owner], held.end[gap]),
    )
