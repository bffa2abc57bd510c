"""Rows that agree in several integer columns, numbered: the join and interning primitive of the
writers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import coded

I64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
_TABLE_LIMIT = 1 << 18
_KEY_LIMIT = 1 << 62


@dataclass(frozen=True)
class Groups:
    """`of` gives each row's group number from 0; `first` one row of each group. Groups are in
    column order.
    """

    of: I64
    first: I64

    def __len__(self) -> int:
        return len(self.first)

    def sizes(self) -> I64:
        """Rows of each group."""
        return np.bincount(self.of, minlength=len(self.first))


def group_rows(*columns: Ints) -> Groups:
    """Groups of equal rows, sorted by the columns. Columns that never change cost one pass each."""
    rows = len(columns[0])
    if not rows:
        return Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
    ends = [(int(column.min()), int(column.max())) for column in columns]
    # sizes in bytes and registers have few values in wide ranges: by their ranks a table of all
    # combinations stays small
    sparse = math.prod(high - low + 1 for low, high in ends) > max(_TABLE_LIMIT, rows)
    key, reach = np.zeros(rows, np.int64), 1
    for column, (low, high) in zip(columns, ends, strict=True):
        if low == high:
            continue
        span = high - low + 1
        if reach * span >= _KEY_LIMIT:
            part, span = _dense(column)
            key, reach = _dense(key)
        elif sparse and span <= max(_TABLE_LIMIT, rows):
            part, span = _dense(column)
        else:
            part = column.astype(np.int64) - low
        key, reach = key * span + part, reach * span
    return _numbered(key, reach)


def _dense(values: Ints) -> tuple[I64, int]:
    distinct, ranks = coded(values)
    return ranks, len(distinct)


def _numbered(key: I64, reach: int) -> Groups:
    rows = len(key)
    if reach > max(_TABLE_LIMIT, rows):
        _, first, of = np.unique(key, return_index=True, return_inverse=True)
        return Groups(of.astype(np.int64), first.astype(np.int64))
    first = np.full(reach, -1, np.int64)
    first[key[::-1]] = np.arange(rows - 1, -1, -1)
    present = first >= 0
    return Groups((np.cumsum(present) - 1)[key], first[present])
