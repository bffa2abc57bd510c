"""A table of a trace: columns of equal length, declared once with type, unit and meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.column import (
    Column,
    compact,
    concat_columns,
    own,
    packed,
    repeated,
    taken,
    unpacked,
)

NULL = -1


TableT = TypeVar("TableT", bound="Table")


KeptT = TypeVar("KeptT")


def ns(meaning: str) -> Any:
    """An int64 column of nanoseconds."""
    return field(metadata={"dtype": np.int64, "unit": "ns", "meaning": meaning})


def int64(meaning: str, unit: str = "") -> Any:
    """An int64 column; NULL where not recorded."""
    return field(metadata={"dtype": np.int64, "unit": unit, "meaning": meaning})


def int32(meaning: str, unit: str = "") -> Any:
    """An int32 column; NULL where not recorded."""
    return field(metadata={"dtype": np.int32, "unit": unit, "meaning": meaning})


def code(meaning: str) -> Any:
    """An int32 column of codes into `Trace.strings`; NULL where not recorded."""
    return field(metadata={"dtype": np.int32, "unit": "string", "meaning": meaning})


def index(of: str, meaning: str) -> Any:
    """An int32 column of positions in `Trace.<of>` (sources, devices, streams, ops); NULL where
    none.
    """
    return field(metadata={"dtype": np.int32, "unit": "index", "of": of, "meaning": meaning})


def float64(meaning: str, unit: str = "") -> Any:
    """A float64 column; NaN where not recorded."""
    return field(metadata={"dtype": np.float64, "unit": unit, "meaning": meaning})


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length. Subclasses declare the columns; rows are addressed by position.

    Columns are not written to. One that holds a single value for all rows takes the memory of that
    value.
    """

    def __len__(self) -> int:
        return len(getattr(self, _types(type(self))[0][0]))

    @cached_property
    def _memo(self) -> dict[object, tuple[tuple[object, ...], Any]]:
        return {}

    def kept(self, key: object, others: tuple[object, ...], make: Callable[[], KeptT]) -> KeptT:
        """What `make` works out of these columns and the `others`: once, as long as the others are
        the same objects.

        It goes with this table, not with what is made of the table, and keeps no other table alive.
        """
        held: tuple[object, ...] | None
        found: Any
        held, found = self._memo.get(key, (None, None))
        if held is None or any(
            (one() if isinstance(one, ref) else one) is not other
            for one, other in zip(held, others, strict=True)
        ):
            found = make()
            self._memo[key] = (
                tuple(ref(one) if isinstance(one, Table) else one for one in others),
                found,
            )
        kept: KeptT = found
        return kept

    @classmethod
    def build(cls, rows: int | None = None, **columns: npt.ArrayLike) -> Self:
        """A table from the columns given (scalars are repeated); the rest is NULL or NaN.

        `rows` is needed only when no array is given. Raises ValueError for unequal lengths and
        TypeError for a column that the table does not have.
        """
        known = dict(_types(cls))
        if unknown := set(columns) - set(known):
            raise TypeError(f"{cls.__name__} has no column {sorted(unknown)}")
        arrays = {name: compact(_as(value, known[name])) for name, value in columns.items()}
        lengths = {len(a) for a in arrays.values() if a.ndim}
        if rows is not None:
            lengths.add(rows)
        if len(lengths) > 1:
            raise ValueError(f"{cls.__name__}: columns of unequal length {sorted(lengths)}")
        size = lengths.pop() if lengths else 0
        for name, dtype in known.items():
            if name not in arrays:
                arrays[name] = repeated(_unrecorded(dtype), dtype, size)
            elif not arrays[name].ndim:
                arrays[name] = repeated(arrays[name][()], dtype, size)
        return cls(**arrays)

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls(**_empty_columns(cls))

    def take(self, rows: npt.ArrayLike) -> Self:
        """The rows at these positions, or where the boolean mask holds."""
        picked = np.asarray(rows)
        if picked.dtype == np.bool_ and len(picked) == len(self):  # found once, not for each column
            picked = np.flatnonzero(picked)
        return type(self)(
            **{name: taken(getattr(self, name), picked) for name, _ in _types(type(self))}
        )

    def with_columns(self, **columns: npt.ArrayLike) -> Self:
        """The same table with these columns replaced (cast to their declared type)."""
        types = dict(_types(type(self)))
        return replace(
            self,
            **{
                name: own(np.broadcast_to(np.asarray(value, types[name]), (len(self),)))
                for name, value in columns.items()
            },
        )

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: of a column with one value, that value."""
        return {name: packed(getattr(self, name)) for name, _ in _types(type(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, column in state.items():
            object.__setattr__(self, name, unpacked(column))


_TYPES: dict[type[Table], tuple[tuple[str, Any], ...]] = {}
_EMPTY: dict[type[Table], dict[str, Column]] = {}


def _types(table: type[Table]) -> tuple[tuple[str, Any], ...]:
    """Name and type of each column: `len` and `take` are asked hundreds of times of each point of a
    run, and `dataclasses.fields` makes a new tuple each time.
    """
    if table not in _TYPES:
        _TYPES[table] = tuple((f.name, f.metadata["dtype"]) for f in fields(table))
    return _TYPES[table]


def _empty_columns(table: type[Table]) -> dict[str, Column]:
    """The columns of every table without rows: nothing can be written to them."""
    if table not in _EMPTY:
        _EMPTY[table] = {name: repeated(_unrecorded(kind), kind, 0) for name, kind in _types(table)}
    return _EMPTY[table]


def _unrecorded(dtype: Any) -> float | int:
    """What a column of this type holds where nothing was recorded."""
    return float("nan") if dtype is np.float64 else NULL


def _as(values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values as a column of this type. What a narrower type of integers does not hold is not
    recorded: NumPy would cut its digits, and make another number of it.
    """
    found = np.asarray(values)
    if dtype is np.int32 and found.dtype == np.int64 and found.size:
        low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        if found.min() < low or found.max() > high:
            found = np.where((found >= low) & (found <= high), found, NULL)
    return np.asarray(found, dtype)


def concat(tables: Sequence[TableT]) -> TableT:
    """Rows of all tables in order; at least one table is needed. Codes must refer to the same
    pools.
    """
    kind = type(tables[0])
    if len(tables) == 1:
        return tables[0]
    return kind(
        **{name: concat_columns([getattr(t, name) for t in tables]) for name, _ in _types(kind)}
    )
