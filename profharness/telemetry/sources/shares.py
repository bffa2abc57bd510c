"""Shares of time as a counter: a source that knows the mean over its last interval adds it here,
times the interval.

Written so, the value that a reader gets back between two rows is exactly that mean, whatever rows
lie between.
"""

from __future__ import annotations


class ShareClock:
    """`total` is the sum of value × ns since the first `advance`, which only starts the clock."""

    __slots__ = ("_at_ns", "total")

    def __init__(self) -> None:
        self._at_ns: int | None = None
        self.total = 0.0

    def advance(self, at_ns: int, value: float) -> None:
        """`value` held since the last call."""
        if self._at_ns is not None:
            self.total += value * (at_ns - self._at_ns)
        self._at_ns = at_ns
