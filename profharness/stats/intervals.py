"""Algebra of half-open intervals [start, end) on int64 nanoseconds: vectorised, exact, without any
policy.

A *merged* set is sorted, disjoint, without empty members and without two members that touch.
Functions say which of their arguments must be merged; everything that they return is merged unless
it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Starts and ends of equal length, in ns; `end` is the first instant that no longer belongs."""

    start: I64
    end: I64

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Sum of the lengths: the measure of a merged set, more than it where members overlap."""
        return int(np.sum(self.end - self.start))


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def of(start_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> Intervals:
    """Intervals from starts and ends, as given (not merged)."""
    return Intervals(np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64))


def lasting(start_ns: npt.ArrayLike, dur_ns: npt.ArrayLike) -> Intervals:
    """Intervals from starts and durations, as given (not merged)."""
    start = np.asarray(start_ns, np.int64)
    return Intervals(start, start + np.asarray(dur_ns, np.int64))


def window(start_ns: int, end_ns: int) -> Intervals:
    """The one interval [start, end), or nothing where it would be empty."""
    return of([start_ns], [end_ns]) if end_ns > start_ns else EMPTY


def merge(intervals: Intervals) -> Intervals:
    """The union as a merged set. Empty members vanish."""
    keep = intervals.end > intervals.start
    if not keep.all():
        intervals = Intervals(intervals.start[keep], intervals.end[keep])
    start, end = intervals.start, intervals.end
    if not len(start):
        return EMPTY
    if np.all(start[1:] > end[:-1]):  # as most are: the work of one stream, the calls of one kind
        return intervals
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], reach[last])


def union(*sets: Intervals) -> Intervals:
    """The union of several sets, merged or not."""
    return merge(
        Intervals(
            np.concatenate([s.start for s in sets] or [EMPTY.start]),
            np.concatenate([s.end for s in sets] or [EMPTY.end]),
        )
    )


def overlapping(intervals: Intervals) -> Intervals:
    """The instants that at least two members hold, as a merged set; the members in any order."""
    keep = intervals.end > intervals.start
    start, end = intervals.start[keep], intervals.end[keep]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    # of two that hold an instant the later one began while an earlier one, the longest of them at
    # the latest, went on
    return merge(Intervals(start[1:], np.minimum(end[1:], np.maximum.accumulate(end)[:-1])))


def clip(intervals: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Each member cut to [start, end); what lies outside is left out. Merged stays merged."""
    start, end = np.maximum(intervals.start, start_ns), np.minimum(intervals.end, end_ns)
    keep = end > start
    return Intervals(start, end) if keep.all() else Intervals(start[keep], end[keep])


def complement(merged: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """What the merged set leaves free in [start, end)."""
    inside = clip(merged, start_ns, end_ns)
    if end_ns <= start_ns:
        return EMPTY
    starts = np.concatenate(([start_ns], inside.end))
    ends = np.concatenate((inside.start, [end_ns]))
    keep = ends > starts
    return Intervals(starts[keep].astype(np.int64), ends[keep].astype(np.int64))


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """The intersection of two merged sets."""
    if not len(first) or not len(second):
        return EMPTY
    if len(first) < len(second):  # the members of the smaller set are looked for in the larger one
        first, second = second, first
    if len(second) == 1:
        return clip(first, int(second.start[0]), int(second.end[0]))
    low = np.searchsorted(first.end, second.start, "right")
    high = np.searchsorted(first.start, second.end, "left")
    partners = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(second)), partners)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(partners) - partners, partners)
    other = low[owner] + offset
    start = np.maximum(second.start[owner], first.start[other])
    end = np.minimum(second.end[owner], first.end[other])
    return Intervals(start, end)


def subtract(first: Intervals, second: Intervals) -> Intervals:
    """What of the merged `first` lies outside the merged `second`."""
    if not len(first) or not len(second):
        return first
    free = complement(second, int(first.start[0]), int(first.end[-1]))
    return intersect(first, free)


def measure_before(merged: Intervals, at_ns: I64) -> I64:
    """How many ns of the merged set lie before each instant."""
    if not len(merged):
        return np.zeros(len(at_ns), np.int64)
    before = np.concatenate(([0], np.cumsum(merged.end - merged.start)))
    position = np.searchsorted(merged.start, at_ns, "right")
    last = np.maximum(position - 1, 0)
    past_end = np.maximum(at_ns - merged.end[last], 0)
    partial = np.where(position > 0, np.maximum(at_ns - merged.start[last], 0) - past_end, 0)
    result: I64 = before[last] + partial
    return result


def inside_ns(intervals: Intervals, merged: Intervals) -> I64:
    """For each member of `intervals` (any order, overlaps allowed), how many ns of it lie in the
    merged set.
    """
    if len(merged) == 1:  # one window around everything is the usual case, and needs no search
        inside: I64 = np.minimum(intervals.end, merged.end) - np.maximum(
            intervals.start, merged.start
        )
        return np.maximum(inside, 0)
    inside = measure_before(merged, intervals.end) - measure_before(merged, intervals.start)
    return np.maximum(inside, 0)


def reaching(intervals: Intervals, merged: Intervals) -> npt.NDArray[np.bool_]:
    """Which members of `intervals` (any order) share an instant with the stretch from the first to
    the last of the merged set.

    All that can lie inside the set, and cheaper to tell: what is left out adds nothing to any
    measure over the set.
    """
    if not len(merged):
        return np.zeros(len(intervals), np.bool_)
    meets: npt.NDArray[np.bool_] = (intervals.start < merged.end[-1]) & (
        intervals.end > merged.start[0]
    )
    return meets


def meeting(intervals: Intervals, merged: Intervals) -> npt.NDArray[np.bool_]:
    """Which members of `intervals` (any order) share an instant with a member of the merged set."""
    if len(merged) < 2:
        return reaching(intervals, merged)
    next_one = np.searchsorted(merged.end, intervals.start, "right")
    meets: npt.NDArray[np.bool_] = next_one < len(merged)
    meets &= merged.start[np.minimum(next_one, len(merged) - 1)] < intervals.end
    return meets


def contains(merged: Intervals, at_ns: I64) -> npt.NDArray[np.bool_]:
    """Whether each instant lies in the merged set."""
    if not len(merged):
        return np.zeros(len(at_ns), np.bool_)
    inside: npt.NDArray[np.bool_]
    if len(merged) == 1:
        inside = (at_ns >= merged.start) & (at_ns < merged.end)
        return inside
    position = np.searchsorted(merged.start, at_ns, "right") - 1
    inside = (position >= 0) & (at_ns < merged.end[np.maximum(position, 0)])
    return inside


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function of time: `value[i]` holds from `edge[i]` to `edge[i + 1]`; zero before and
    after.

    There is one value less than there are edges, or none of both.
    """

    edge: I64
    value: F64

    def at(self, at_ns: npt.ArrayLike) -> F64:
        """The value at each instant."""
        position = np.searchsorted(self.edge, np.asarray(at_ns), "right") - 1
        known = (position >= 0) & (position < len(self.value))
        out = np.zeros(len(position))
        out[known] = self.value[position[known]]
        return out

    def pieces(self) -> Intervals:
        """The intervals on which the value is constant, in the order of `value` (they touch: not
        merged).
        """
        return Intervals(self.edge[:-1], self.edge[1:]) if len(self.edge) else EMPTY

    def where(self, condition: Callable[[F64], npt.NDArray[np.bool_]]) -> Intervals:
        """The instants between the first and the last edge whose value meets the condition."""
        holds = condition(self.value)
        pieces = self.pieces()
        return merge(Intervals(pieces.start[holds], pieces.end[holds]))


def running(intervals: Intervals, weight: npt.ArrayLike = 1.0) -> Steps:
    """The sum of the weights of all intervals that hold each instant; with weight 1 the
    concurrency.
    """
    keep = intervals.end > intervals.start
    weights = np.broadcast_to(np.asarray(weight, np.float64), (len(intervals),))[keep]
    if not len(weights):
        return Steps(EMPTY.start, np.empty(0))
    times = np.concatenate((intervals.start[keep], intervals.end[keep]))
    changes = np.concatenate((weights, -weights))
    order = np.argsort(times, kind="stable")
    times, changes = times[order], changes[order]
    first = np.concatenate(([True], times[1:] > times[:-1]))
    level = np.cumsum(changes)
    last = np.concatenate((np.flatnonzero(first)[1:] - 1, [len(times) - 1]))
    return Steps(times[first], level[last][:-1])


def integrate(
    steps: Steps, merged: Intervals, function: Callable[[F64], F64] | None = None
) -> float:
    """The integral over the merged set of `function(value)` dt (of the value itself by default), in
    value times ns.

    Outside the step function's edges nothing is added, whatever `function(0)` is.
    """
    if not len(steps.value):
        return 0.0
    values = steps.value if function is None else function(steps.value)
    return float(np.dot(values, inside_ns(steps.pieces(), merged).astype(np.float64)))
