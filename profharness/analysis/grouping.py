"""Group rows by columns of codes: exact keys, sums, order statistics and modes, vectorised.

For tables of millions of rows and few distinct values; knows nothing of traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
_LARGEST = 2**62


def pack(columns: Sequence[Integers]) -> I64:
    """One int64 key per row, equal exactly where all columns are equal and ordered as the columns are.

    Columns of equal length, at least one. The keys are mixed-radix numbers; where they would not fit
    in 62 bits, the part made so far is first replaced by its rank among the distinct values.
    """
    key = np.zeros(len(columns[0]), np.int64)
    if not len(key):
        return key
    size = 1
    for column in columns:
        digit, span = _digits(column)
        if size > _LARGEST // span:
            key = _ranks(key)
            size = int(key.max()) + 1
        key = key * span + digit
        size *= span
    return key


def _digits(column: Integers) -> tuple[I64, int]:
    """The column from zero up and its span, which stays small enough to be joined with a key of ranks."""
    low = int(column.min())
    span = int(column.max()) - low + 1
    if span > _LARGEST // len(column):
        return _ranks(column), len(column)
    return column.astype(np.int64) - low, span


def _ranks(column: Integers) -> I64:
    return np.unique(column, return_inverse=True)[1].astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class Grouped:
    """Values sorted by group, then by value. `first[g]` is where group `g` begins and `key[g]` its key."""

    key: I64
    first: I64
    count: I64
    value: I64

    def sums(self) -> I64:
        """Exact sum per group."""
        if not len(self.first):
            return self.first
        sums: I64 = np.add.reduceat(self.value, self.first)
        return sums

    def smallest(self) -> I64:
        """Smallest value per group."""
        return self.value[self.first]

    def largest(self) -> I64:
        """Largest value per group."""
        largest: I64 = self.value[self.first + self.count - 1]
        return largest

    def medians(self) -> F64:
        """Exact median per group: the middle value, or half the sum of the two middle ones."""
        low = self.value[self.first + (self.count - 1) // 2]
        high = self.value[self.first + self.count // 2]
        medians: F64 = (low + high) / 2
        return medians

    def deviations(self) -> F64:
        """Sample standard deviation per group (n - 1), as rocprofv3 prints it; 0 for a single value."""
        if not len(self.first):
            return np.empty(0)
        mean = self.sums() / self.count
        squares = np.add.reduceat((self.value - np.repeat(mean, self.count)) ** 2, self.first)
        deviation: F64 = np.sqrt(squares / np.maximum(self.count - 1, 1))
        return deviation


def group(key: Integers, value: I64) -> Grouped:
    """Values by key, groups in rising order of key."""
    if not len(key):
        empty = np.empty(0, np.int64)
        return Grouped(empty, empty, empty, empty)
    keys = key.astype(np.int64)
    low, span = int(value.min()), int(value.max()) - int(value.min()) + 1
    base = int(keys.min())
    if int(keys.max()) - base < _LARGEST // span:
        # One sort of combined numbers is several times faster than sorting by two columns.
        combined = np.sort((keys - base) * span + (value - low))
        keys, values = combined // span + base, combined % span + low
    else:
        order = np.lexsort((value, keys))
        keys, values = keys[order], value[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return Grouped(keys[first], first, np.diff(np.append(first, len(keys))), values)


def modes(key: Integers, columns: Sequence[Integers]) -> tuple[I64, I64]:
    """The most common combination of the columns within each group: keys (rising), and a row that has it.

    Among equally common ones the smallest combination wins, so that the answer does not depend on order.
    """
    if not len(key):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    packed = pack([key, *columns])
    order = np.argsort(packed, kind="stable")
    ordered = packed[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    count = np.diff(np.append(first, len(ordered)))
    row = order[first]
    owner = key[row].astype(np.int64)
    best = np.lexsort((first, -count, owner))
    owners = owner[best]
    leading = np.concatenate(([True], owners[1:] != owners[:-1]))
    return owners[leading], row[best[leading]]
