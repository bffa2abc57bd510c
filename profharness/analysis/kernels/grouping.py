"""Group rows by columns of codes: exact keys, sums, order statistics and modes, vectorised.

For tables of millions of rows and few distinct values; knows nothing of traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import LARGEST, pack

__all__ = ["Grouped", "combinations", "group", "modes", "pack"]

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Grouped:
    """Values sorted by group, then by value. `first[g]` is where group `g` begins and `key[g]` its
    key.

    `count` is the number of values in each group. Where `weight` is given, each entry stands for so
    many equal values; without it for one.
    """

    key: I64
    first: I64
    count: I64
    value: I64
    weight: I64 | None = None

    def sums(self) -> I64:
        """Exact sum per group."""
        if not len(self.first):
            return self.first
        sums: I64 = np.add.reduceat(
            self.value if self.weight is None else self.value * self.weight, self.first
        )
        return sums

    def smallest(self) -> I64:
        """Smallest value per group."""
        return self.value[self.first]

    def largest(self) -> I64:
        """Largest value per group."""
        largest: I64 = self.value[np.append(self.first[1:], len(self.value))[: len(self.first)] - 1]
        return largest

    def medians(self) -> F64:
        """Exact median per group: the middle value, or half the sum of the two middle ones."""
        medians: F64 = (self._ranked((self.count - 1) // 2) + self._ranked(self.count // 2)) / 2
        return medians

    def _ranked(self, rank: I64) -> I64:
        """The value of this rank (from 0) in each group."""
        if self.weight is None or not len(self.first):
            return self.value[self.first + rank if len(self.first) else self.first]
        upto = np.cumsum(self.weight)
        before = np.cumsum(self.count) - self.count
        return self.value[np.searchsorted(upto, before + rank, "right")]

    def deviations(self) -> F64:
        """Sample standard deviation per group (n - 1), as rocprofv3 prints it; 0 for a single
        value.
        """
        if not len(self.first):
            return np.empty(0)
        mean = self.sums() / self.count
        entries = np.diff(np.append(self.first, len(self.value)))
        off = (self.value - np.repeat(mean, entries)) ** 2
        squares = np.add.reduceat(off if self.weight is None else off * self.weight, self.first)
        deviation: F64 = np.sqrt(squares / np.maximum(self.count - 1, 1))
        return deviation

    def owner(self) -> I64:
        """The key of each entry."""
        owner: I64 = np.repeat(self.key, np.diff(np.append(self.first, len(self.value))))
        return owner

    def without(self, value: int) -> Grouped:
        """The same groups without the entries of this value, which is lower than any other; a group
        of nothing else keeps them.
        """
        mixed = (self.smallest() == value) & (self.largest() != value)
        if not mixed.any():
            return self
        lengths = np.diff(np.append(self.first, len(self.value)))
        dropped = np.repeat(mixed, lengths) & (self.value == value)
        weight = np.ones(len(dropped), np.int64) if self.weight is None else self.weight
        gone = np.cumsum(np.append(0, dropped))[self.first]
        return Grouped(
            self.key,
            self.first - gone,
            self.count - np.add.reduceat(np.where(dropped, weight, 0), self.first),
            self.value[~dropped],
            None if self.weight is None else self.weight[~dropped],
        )

    def condensed(self) -> Grouped:
        """The same groups with one entry per distinct value."""
        if not len(self.value):
            return self
        new = np.concatenate(([True], (np.diff(self.value) != 0)))
        new[self.first] = True
        places = np.flatnonzero(new)
        weight = np.ones(len(self.value), np.int64) if self.weight is None else self.weight
        return Grouped(
            self.key,
            np.searchsorted(places, self.first),
            self.count,
            self.value[places],
            np.add.reduceat(weight, places),
        )


def group(key: Integers, value: I64, weight: I64 | None = None) -> Grouped:
    """Values by key, groups in rising order of key; with `weight` each stands for so many equal
    ones (at least 1).
    """
    if not len(key):
        empty = np.empty(0, np.int64)
        return Grouped(empty, empty, empty, empty)
    keys = key.astype(np.int64)
    low, span = int(value.min()), int(value.max()) - int(value.min()) + 1
    base = int(keys.min())
    if weight is None and int(keys.max()) - base < LARGEST // span:
        # One sort of combined numbers is several times faster than sorting by two columns.
        combined = np.sort((keys - base) * span + (value - low))
        keys, values = combined // span + base, combined % span + low
    else:
        order = np.lexsort((value, keys))
        keys, values = keys[order], value[order]
        weight = None if weight is None else weight[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    count = (
        np.diff(np.append(first, len(keys))) if weight is None else np.add.reduceat(weight, first)
    )
    return Grouped(keys[first], first, count, values, weight)


def combinations(columns: Sequence[Integers], weight: I64 | None = None) -> tuple[I64, I64]:
    """Each distinct combination of the columns, in rising order: a row that has it, and how often
    it occurs (or the sum of weights).
    """
    if not len(columns[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    packed = pack(columns)
    order = np.argsort(packed, kind="stable")
    ordered = packed[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if weight is None:
        return order[first], np.diff(np.append(first, len(ordered)))
    return order[first], np.add.reduceat(weight[order], first)


def modes(key: Integers, columns: Sequence[Integers], weight: I64 | None = None) -> tuple[I64, I64]:
    """The most common combination of the columns within each group: keys (rising), and a row that
    has it.

    Among equally common ones the smallest combination wins, so that the answer does not depend on
    order.
    """
    row, count = combinations([key, *columns], weight)
    if not len(row):
        return row, row
    owner = key[row].astype(np.int64)
    best = np.lexsort((np.arange(len(row)), -count, owner))
    owners = owner[best]
    leading = np.concatenate(([True], owners[1:] != owners[:-1]))
    return owners[leading], row[best[leading]]
