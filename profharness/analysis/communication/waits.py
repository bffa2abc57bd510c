"""Who waits for whom in a collective, and how much of their time ranks wait, as a share that cannot
exceed the whole. Pure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.stats.intervals import lasting, merge
from profharness.trace.model import I64

NOTICEABLE_NS = 20_000
"""A smaller difference of two ranks is within what launches and clocks scatter by."""


def awaited(start: I64, end: I64, meet: npt.NDArray[np.bool_]) -> I64:
    """The column of the rank that each rank waited for, its own where it waited for none; (calls,
    ranks) as `start` and `end`, which are ns on one clock.

    Where all ranks meet (`meet`, per call) they wait for the last one. In others (a broadcast, a
    gather, messages) what a rank gets has come from those that were done when it was: it waits for
    the last of them, and the one that is done first, before the last rank has come, for none. That
    is the root of a broadcast.
    """
    own = np.arange(start.shape[1])[None, :]
    waited_for: I64 = np.where(meet[:, None], start.argmax(axis=1)[:, None], own)
    rows = np.flatnonzero(~meet)
    if len(rows):
        begun, done = start[rows], end[rows]
        last = _last_come(begun, done)
        later = np.take_along_axis(begun, last, axis=1) > begun
        gave = (done == done.min(axis=1)[:, None]) & (done <= begun.max(axis=1)[:, None])
        waited_for[rows] = np.where(later & ~gave, last, own)
    return waited_for


def _last_come(begun: I64, done: I64) -> I64:
    """For each rank the column of the one that came last of those that had come and were done (but
    for what scatters) when it was done; the first of several. (calls, ranks), as `awaited` has it.

    Such are more, never fewer, at each later end: in the order of the instants from which on they
    count, a running maximum finds it.
    """
    calls, ranks = begun.shape
    # positions by start, of equal ones the first column last
    by_start = ranks - 1 - np.argsort(begun[:, ::-1], axis=1, kind="stable")
    place = np.empty_like(by_start)
    np.put_along_axis(place, by_start, np.arange(ranks)[None, :], axis=1)
    counts_from = np.maximum(begun, done - NOTICEABLE_NS)
    order = np.argsort(np.concatenate((counts_from, done), axis=1), axis=1, kind="stable")
    nothing = np.full((calls, ranks), -1)
    seen = np.take_along_axis(np.concatenate((place, nothing), axis=1), order, axis=1)
    latest = np.empty_like(seen)
    np.put_along_axis(latest, order, np.maximum.accumulate(seen, axis=1), axis=1)
    last: I64 = np.take_along_axis(by_start, latest[:, ranks:], axis=1)
    return last


class Waits:
    """When each rank waited for another, of all groups: calls that wait at once count once."""

    def __init__(self, ranks: int) -> None:
        self._starts: list[list[I64]] = [[] for _ in range(ranks)]
        self._ends: list[list[I64]] = [[] for _ in range(ranks)]
        self._first: list[int | None] = [None] * ranks
        self._last = [0] * ranks

    def add(self, members: I64, start: I64, end: I64, waited_for: I64) -> I64:
        """Calls of a group, (calls, ranks) ns: a rank waits from its start until that of the one
        that it waits for, at most until its own end. Gives how long.
        """
        until = np.minimum(np.take_along_axis(start, waited_for, axis=1), end)
        waits: I64 = np.maximum(until - start, 0)
        for column, rank in enumerate(members.tolist()):
            self._starts[rank].append(start[:, column])
            self._ends[rank].append(start[:, column] + waits[:, column])
            begun, known = int(start[:, column].min()), self._first[rank]
            self._first[rank] = begun if known is None else min(known, begun)
            self._last[rank] = max(self._last[rank], int(end[:, column].max()))
        return waits

    def waited_ns(self) -> list[int]:
        """How long each rank waited."""
        return [
            merge(lasting(begun, np.concatenate(ends) - begun)).total if starts else 0
            for starts, ends in zip(self._starts, self._ends, strict=True)
            for begun in (np.concatenate(starts) if starts else np.empty(0, np.int64),)
        ]

    def share(self) -> float:
        """The part of all ranks' time that they waited, 0 to 1: from a rank's first matched call to
        the end of its last one.
        """
        whole = sum(
            last - first
            for first, last in zip(self._first, self._last, strict=True)
            if first is not None
        )
        return sum(self.waited_ns()) / whole if whole else 0.0
