"""NumPy columns of a table: one that holds a single value for all rows is that value, seen as often
as there are rows. Pure.

Most columns of most files are such: not recorded, or the same process throughout. They are arrays
like others (with a stride of 0, and not writable), and stay such where rows are taken or tables
joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]
_INT32 = np.iinfo(np.int32)
_LONG = 4096  # rows; shorter columns are not looked through


def repeated(value: Any, dtype: npt.DTypeLike, size: int) -> Column:
    """`size` rows of one value, in the memory of one."""
    one = np.array(value, dtype)
    one.flags.writeable = False
    if one.dtype.hasobject:
        return np.broadcast_to(one, (size,))
    return np.ndarray(
        (size,), one.dtype, one, 0, (0,)
    )  # what numpy.broadcast_to gives, without its Python


def is_repeated(column: Column) -> bool:
    """Whether it is known to hold one value."""
    return column.strides == (0,)


def compact(column: Column) -> Column:
    """The column, in the memory of one value where a long one turns out to hold a single value."""
    if (
        column.size >= _LONG
        and not is_repeated(column)
        and column[0] == column[-1]
        and (column == column[0]).all()
    ):
        return repeated(column[0], column.dtype, len(column))
    return column


def own(column: Column) -> Column:
    """A copy, unless it holds one value that nobody can change."""
    if is_repeated(column) and not column.flags.writeable:
        return column
    found = compact(column)
    return found if found is not column else column.copy()


def taken(column: Column, rows: Column) -> Column:
    """The rows at these positions, or where the mask holds."""
    if is_repeated(column) and len(column) and rows.dtype.kind in "iu":
        return repeated(column[0], column.dtype, len(rows))
    return compact(column[rows])


def concat_columns(columns: Sequence[Column]) -> Column:
    """One behind the other; at least one."""
    filled = [column for column in columns if len(column)]
    if filled and all(is_repeated(column) for column in filled) and _alike(filled):
        return repeated(filled[0][0], filled[0].dtype, sum(map(len, filled)))
    return np.concatenate(columns)


def _alike(columns: Sequence[Column]) -> bool:
    if not len(columns[0]):
        return False
    first = columns[0][0]
    return all(
        column.dtype == columns[0].dtype and column[0].tobytes() == first.tobytes()
        for column in columns
    )


def narrow(column: Column) -> Column:
    """The same numbers in as few bytes as an int32 or a single value takes, if they fit; floats
    only if all are equal.
    """
    if not len(column) or is_repeated(column):
        return column
    low, high = np.minimum.reduce(column), np.maximum.reduce(column)
    if low == high:
        return repeated(low, column.dtype, len(column))
    if column.dtype == np.int64 and _INT32.min <= low and high <= _INT32.max:
        return column.astype(np.int32)
    return column


def gathered(blocks: list[Column], dtype: npt.DTypeLike = None) -> Column:
    """One behind the other; at least one. The list is emptied: each block is let go as soon as it
    is copied.

    Without a type it is the narrowest that holds all blocks, or the memory of one value if they
    hold no other.
    """
    filled = [block for block in blocks if len(block)] or blocks[:1]
    if all(is_repeated(block) for block in filled) and _alike(filled):
        blocks.clear()
        return repeated(filled[0][0], dtype or filled[0].dtype, sum(map(len, filled)))
    whole: Column = np.empty(
        sum(map(len, filled)), dtype or np.result_type(*{_kept_in(block) for block in filled})
    )
    blocks.clear()
    filled.reverse()
    at = 0
    while filled:
        block = filled.pop()
        whole[at : at + len(block)] = block
        at += len(block)
    return whole


def _kept_in(block: Column) -> np.dtype[Any]:
    """The type that a block's values need; of one value there may be few bytes behind a wide
    type.
    """
    return (
        narrow_type(int(block[0]))
        if is_repeated(block) and block.dtype == np.int64 and len(block)
        else block.dtype
    )


def narrow_type(value: int) -> np.dtype[Any]:
    """int32 if it holds the value, else int64."""
    return np.dtype(np.int32) if _INT32.min <= value <= _INT32.max else np.dtype(np.int64)


def packed(column: Column) -> Any:
    """What `unpacked` makes the column of; small where it holds one value."""
    return (
        (len(column), column[0])
        if is_repeated(column) and len(column) > 1
        else np.ascontiguousarray(column)
    )


def unpacked(column: Any) -> Column:
    """The inverse of `packed`."""
    return repeated(column[1], column[1].dtype, column[0]) if isinstance(column, tuple) else column
