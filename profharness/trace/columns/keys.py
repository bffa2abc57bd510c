"""Several integer columns as one, and the distinct values of one: exact keys of rows, for joins and
groups. Pure.

Most columns of codes hold few values from a small range (names, devices, processes): those are
marked in a table of that range, without a sort, which for millions of rows costs many times as
much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.column import is_repeated

I64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]
IntegerT = TypeVar("IntegerT", bound=np.integer[Any])
LARGEST = 2**62
# a range up to so many times the rows is marked in a table: beyond, sorting touches less memory
_DENSE = 2
_SMALL = 1 << 16  # a table of this size stays in the processor's cache, however few the rows


def pack(columns: Sequence[Integers]) -> I64:
    """One int64 key per row, equal exactly where all columns are equal and ordered as the columns
    are.

    Columns of equal length, at least one. The keys are mixed-radix numbers; where they would not
    fit in 62 bits, the part made so far is first replaced by its rank among the distinct values.
    """
    key = np.zeros(len(columns[0]), np.int64)
    if not len(key):
        return key
    size = 1
    for column in columns:
        if is_repeated(column):  # tells no rows apart
            continue
        digit, low, span = _digits(column)
        if size > LARGEST // span:
            key = _ranks(key)
            size = int(key.max()) + 1
        key *= span
        key += digit
        key -= low
        size *= span
    return key


def _digits(column: Integers) -> tuple[I64, int, int]:
    """The column, its lowest value and its span, which stays small enough to be joined with a key
    of ranks.
    """
    low, high = int(column.min()), int(column.max())
    if high - low >= LARGEST // len(column):
        return _ranks(column), 0, len(column)
    return column.astype(np.int64, copy=False), low, high - low + 1


def _ranks(column: Integers) -> I64:
    return coded(column)[1]


def distinct(column: npt.NDArray[IntegerT]) -> npt.NDArray[IntegerT]:
    """The values that occur, in rising order: `numpy.unique`."""
    present = _present(column)
    values: npt.NDArray[IntegerT]
    if present is None:
        values = np.unique(column[:1] if is_repeated(column) else column)
        return values
    marks, low = present
    values = (np.flatnonzero(marks) + low).astype(column.dtype)
    return values


def coded(column: npt.NDArray[IntegerT]) -> tuple[npt.NDArray[IntegerT], I64]:
    """The values that occur, in rising order, and for each row the position of its own:
    `numpy.unique` with `return_inverse`.
    """
    present = _present(column)
    if present is None:
        if is_repeated(column) and len(column):
            return column[:1].copy(), np.zeros(len(column), np.int64)
        values, place = np.unique(column, return_inverse=True)
        return values, place.astype(np.int64, copy=False)
    marks, low = present
    rank = np.cumsum(marks, dtype=np.int64) - 1
    return (np.flatnonzero(marks) + low).astype(column.dtype), rank[_places(column, low)]


def first_rows(column: Integers) -> tuple[I64, I64]:
    """The first row of each value that occurs, by rising value, and for each row the position of
    its value.
    """
    values, place = coded(column)
    first = np.empty(len(values), np.int64)
    first[place[::-1]] = np.arange(
        len(column) - 1, -1, -1
    )  # of several rows the one written last stays: the first
    return first, place


def _present(column: Integers) -> tuple[npt.NDArray[np.bool_], int] | None:
    """Which values occur from the lowest of the table on; None where the range is too wide for its
    rows, or there is nothing to look through.
    """
    if not len(column) or is_repeated(column):
        return None
    low, high = int(column.min()), int(column.max())
    if high - low >= max(_DENSE * len(column), _SMALL):
        return None
    if 0 <= low <= _SMALL:  # codes, mostly: they are places in the table as they are
        low = 0
    present = np.zeros(high - low + 1, np.bool_)
    present[_places(column, low)] = True
    return present, low


def _places(column: Integers, low: int) -> Integers:
    return column.astype(np.int64, copy=False) - low if low else column
