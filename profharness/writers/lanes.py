"""Order of begin and end events, and lanes for spans that cannot share one track.

A TrackEvent track is a stack: an end closes the innermost open begin, and ties in time are broken
by the order in the file. So spans may share a lane only where they are disjoint, touch, or nest;
ends are written before begins of the same instant. All functions are pure, over integer times, and
vectorised; `nested_lanes` alone walks spans one by one, and only in stretches where spans of one
track overlap without nesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
_KEY_LIMIT = 1 << 60  # leaves two bits for the order of events within an instant
_NOTHING_OPEN = 1 << 64  # as the end of the innermost open span of a lane: later than any


@dataclass(frozen=True)
class Events:
    """Begin and end events of spans, sorted by group, then time, then the order that a stack needs.

    `span` is the position of the span; a span of no length has its begin and end side by side.
    """

    span: npt.NDArray[np.int32]
    begin: Mask


def order_events(group: Ints, start: I64, dur: I64) -> Events:
    """Events of spans [start, start + dur) such that nested and touching spans replay as they are.

    At one instant: ends (inner first), spans of no length, begins (outer first).
    """
    opens, closes = _instants(group, start, start + dur)
    by_begin = _sorted_by(opens, -closes).astype(np.int32)
    empty = (dur == 0)[by_begin]
    points, longer = by_begin[empty], by_begin[~empty]
    backwards = longer[::-1]
    by_end = backwards[_sorted_by(closes[backwards], -opens[backwards])]
    keys = np.concatenate(
        (closes[by_end] * 4, np.repeat(opens[points] * 4 + 1, 2), opens[longer] * 4 + 2)
    )
    del opens, closes  # what is not needed any more would add to the largest of all sorts
    order = np.argsort(keys, kind="stable").astype(np.int32)
    del keys
    span = np.concatenate((by_end, np.repeat(points, 2), longer))
    begin = np.concatenate(
        (
            np.zeros(len(by_end), np.bool_),
            np.tile([True, False], len(points)),
            np.ones(len(longer), np.bool_),
        )
    )
    return Events(span[order], begin[order])


def flat_lanes(events: Events) -> I64:
    """A lane per span such that no two spans of a lane overlap: as few lanes as ever overlap at
    once.

    A span takes the lane that was freed last at its level, so quiet stretches stay on the first
    lanes. Levels and lanes start again whenever nothing is open.
    """
    count = len(events.span) // 2
    if not count:
        return np.zeros(0, np.int64)
    level = _levels(events)
    stretch = np.cumsum((level == 1) & events.begin)
    order = _by_level(level)
    begins, ends = order[0::2], order[1::2]
    heir, giver = begins[1:], ends[:-1]
    inherits = (level[heir] == level[giver]) & (stretch[heir] == stretch[giver])
    lane = np.empty(count, np.int64)
    lane[events.span[begins]] = level[begins] - 1
    root = np.arange(count)
    root[events.span[heir[inherits]]] = events.span[giver[inherits]]
    while True:
        further = root[root]
        if np.array_equal(further, root):
            return np.asarray(lane[root], np.int64)
        root = further


def nested_lanes(events: Events, start: I64, dur: I64) -> I64:
    """A lane per span such that the spans of a lane are disjoint or nest; all on lane 0 where they
    do already.
    """
    count = len(events.span) // 2
    lane = np.zeros(count, np.int64)
    if not count:
        return lane
    level = _levels(events)
    order = _by_level(level)
    begins, ends = order[0::2], order[1::2]
    opened, closed = events.span[begins], events.span[ends]
    crossed = (start + dur)[opened] != (start + dur)[closed]
    if not crossed.any():
        return lane
    stretch = np.cumsum((level == 1) & events.begin)
    affected = np.zeros(int(stretch[-1]) + 1, np.bool_)
    affected[stretch[begins[crossed]]] = True
    rows = events.span[events.begin & affected[stretch]]
    which = stretch[events.begin & affected[stretch]]
    lane[rows] = stack_lanes(which.tolist(), start[rows].tolist(), (start + dur)[rows].tolist())
    return lane


def stack_lanes(stretches: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """First lane on which each span nests or is free, in order of begin events."""
    lanes: list[int] = []
    open_lanes, current = _Stacks(), -1
    for stretch, start, end in zip(stretches, starts, ends, strict=True):
        if stretch != current:
            open_lanes, current = _Stacks(), stretch
        lanes.append(open_lanes.place(start, end))
    return lanes


class _Stacks:
    """The open spans of the lanes of one stretch, of which any number may overlap.

    A tree of maxima over the ends of the innermost open spans leads to the first lane that takes a
    span, and a heap to the spans that have ended: each span costs the logarithm of the lanes.
    """

    def __init__(self) -> None:
        self._stacks: list[list[int]] = [[]]
        self._latest = [0, _NOTHING_OPEN]  # node n has the children 2n and 2n + 1; lanes are leaves
        self._ending: list[tuple[int, int]] = []

    def place(self, start: int, end: int) -> int:
        """The lane of the next span; spans come by their starts."""
        while self._ending and self._ending[0][0] <= start:
            ended = heappop(self._ending)[1]
            self._stacks[ended].pop()
            self._update(ended)
        if self._latest[1] < end:
            self._double()
        node, count = 1, len(self._stacks)
        while node < count:
            node *= 2
            node += self._latest[node] < end
        lane = node - count
        self._stacks[lane].append(end)
        heappush(self._ending, (end, lane))
        self._update(lane)
        return lane

    def _update(self, lane: int) -> None:
        stack, latest = self._stacks[lane], self._latest
        node = lane + len(self._stacks)
        latest[node] = stack[-1] if stack else _NOTHING_OPEN
        while node > 1:
            node //= 2
            latest[node] = max(latest[2 * node], latest[2 * node + 1])

    def _double(self) -> None:
        count = len(self._stacks)
        self._stacks += [[] for _ in range(count)]
        leaves = self._latest[count:] + [_NOTHING_OPEN] * count
        levels = [leaves]
        while len(levels[-1]) > 1:
            below = levels[-1]
            levels.append([max(pair) for pair in zip(below[::2], below[1::2], strict=True)])
        self._latest = [0, *chain.from_iterable(reversed(levels))]


def _levels(events: Events) -> npt.NDArray[np.int32]:
    """Depth of each event: 1 for the outermost begin and its end."""
    depth: npt.NDArray[np.int32] = np.cumsum(
        np.where(events.begin, np.int8(1), np.int8(-1)), dtype=np.int32
    )
    depth += ~events.begin
    return depth


def _by_level(level: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Events by level, then as they come: begins and ends alternate, each begin before its stack
    partner.
    """
    small = level.astype(np.int16) if len(level) and level.max() < np.iinfo(np.int16).max else level
    return np.argsort(small, kind="stable").astype(np.int32)


def _instants(group: Ints, start: I64, end: I64) -> tuple[I64, I64]:
    """Starts and ends as small numbers that sort by group, then time."""
    if not len(start):
        return start, end
    first, groups = int(start.min()), int(group.max()) + 1
    reach = int(end.max()) - first + 1
    if groups * reach < _KEY_LIMIT:
        base = group.astype(np.int64) * reach - first
        return base + start, base + end
    times, ranks = np.unique(np.concatenate((start, end)), return_inverse=True)
    base = group.astype(np.int64) * len(times)
    return base + ranks[: len(start)], base + ranks[len(start) :]


def _sorted_by(major: I64, minor: I64) -> I64:
    """Stable order by major, then minor; quick where the rows are in order already."""
    step = np.diff(major)
    if np.all((step > 0) | ((step == 0) & (np.diff(minor) >= 0))):
        return np.arange(len(major))
    return np.asarray(np.lexsort((minor, major)), np.int64)
