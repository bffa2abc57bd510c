"""Several integer columns as one: exact keys of rows, for joins and groups. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]
LARGEST = 2**62


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
        if size > LARGEST // span:
            key = _ranks(key)
            size = int(key.max()) + 1
        key = key * span + digit
        size *= span
    return key


def _digits(column: Integers) -> tuple[I64, int]:
    """The column from zero up and its span, which stays small enough to be joined with a key of ranks."""
    low = int(column.min())
    span = int(column.max()) - low + 1
    if span > LARGEST // len(column):
        return _ranks(column), len(column)
    return column.astype(np.int64) - low, span


def _ranks(column: Integers) -> I64:
    return np.unique(column, return_inverse=True)[1].astype(np.int64, copy=False)
