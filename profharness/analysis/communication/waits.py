"""How much of their time ranks wait for each other, as a share that cannot exceed the
whole. Pure.
"""

from __future__ import annotations

import numpy as np

from profharness.stats.intervals import lasting, merge
from profharness.trace.model import I64


class Waits:
    """When each rank waited for another, of all groups: calls that wait at once count once."""

    def __init__(self, ranks: int) -> None:
        self._starts: list[list[I64]] = [[] for _ in range(ranks)]
        self._ends: list[list[I64]] = [[] for _ in range(ranks)]
        self._first: list[int | None] = [None] * ranks
        self._last = [0] * ranks

    def add(self, members: I64, start: I64, end: I64) -> None:
        """Calls of a group, (calls, ranks) ns: a rank waits from its start until the last one's, at
        most until its own end.
        """
        until = np.minimum(start.max(axis=1, keepdims=True), end)
        for column, rank in enumerate(members.tolist()):
            self._starts[rank].append(start[:, column])
            self._ends[rank].append(np.maximum(until[:, column], start[:, column]))
            begun, known = int(start[:, column].min()), self._first[rank]
            self._first[rank] = begun if known is None else min(known, begun)
            self._last[rank] = max(self._last[rank], int(end[:, column].max()))

    def share(self) -> float:
        """The part of all ranks' time that they waited, 0 to 1: from a rank's first matched call to
        the end of its last one.
        """
        waited = whole = 0
        for starts, ends, first, last in zip(
            self._starts, self._ends, self._first, self._last, strict=True
        ):
            if first is not None:
                begun, over = np.concatenate(starts), np.concatenate(ends)
                waited += merge(lasting(begun, over - begun)).total
                whole += last - first
        return waited / whole if whole else 0.0
