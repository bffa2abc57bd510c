"""Columns that grow while a file is read, and pools that turn what a file repeats into small
codes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.column import Column, gathered, narrow, repeated
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, Strings

KeyT = TypeVar("KeyT")


class Growing:
    """Named int64 columns that grow by equal blocks, each kept as narrow as its values are."""

    def __init__(self, *names: str) -> None:
        self._blocks: dict[str, list[npt.NDArray[np.integer[Any]]]] = {name: [] for name in names}
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: str) -> bool:
        return name in self._blocks

    def add(self, rows: int, **blocks: npt.ArrayLike) -> None:
        """Add `rows` rows; scalars are repeated. Raises KeyError for a missing or unknown column,
        ValueError for one of another length.
        """
        if unknown := set(blocks) - set(self._blocks):
            raise KeyError(f"no such column: {sorted(unknown)}")
        for name, grown in self._blocks.items():
            block = np.asarray(blocks[name], np.int64)
            if block.shape not in ((), (rows,)):
                raise ValueError(f"{name} has {block.shape} values for {rows} rows")
            grown.append(narrow(block) if block.ndim else repeated(block, np.int64, rows))
        self._rows += rows

    def narrowest(self) -> dict[str, Column]:
        """All columns, each in as few bytes as it takes; empty without rows. The blocks are let
        go.
        """
        return {name: gathered(blocks) for name, blocks in self._blocks.items() if blocks}

    def extend(self, columns: Mapping[str, Column]) -> None:
        """Add the rows of another table with the same columns, as `narrowest` gives them."""
        for name, column in columns.items():
            self._blocks[name].append(column)
        self._rows += len(next(iter(columns.values()), ()))

    def peek(self, name: str) -> I64:
        """The whole column so far; the blocks stay."""
        blocks = self._blocks[name]
        return gathered(list(blocks), np.int64) if blocks else np.zeros(0, np.int64)

    def take(self, name: str) -> I64:
        """The whole column; its blocks are let go, so a column can be taken once."""
        blocks = self._blocks.pop(name)
        return gathered(blocks, np.int64) if blocks else np.zeros(0, np.int64)


class Pool(dict[KeyT, int], Generic[KeyT]):
    """Key -> code, made on first sight by `make`; `codes` maps many at C speed."""

    def __init__(self, make: Callable[[KeyT], int] | None = None) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: KeyT) -> int:
        made = self[key] = len(self) if self._make is None else self._make(key)
        return made

    def codes(self, keys: Iterable[KeyT]) -> I32:
        """The codes of many keys."""
        found = list(map(self.__getitem__, keys))
        codes = np.empty(len(found), np.int32)
        struct.pack_into(f"{len(found)}i", codes.data, 0, *found)
        return codes


def packed_integers(values: Sequence[Any]) -> I64:
    """int64 of Python's integers, in less than half the time that NumPy takes for them. Raises
    struct.error where one is none, or is too large.
    """
    column = np.empty(len(values), np.int64)
    struct.pack_into(f"{len(values)}q", column.data, 0, *values)
    return column


def text_pool(strings: Strings) -> Pool[bytes]:
    """Raw text to codes of `strings`; the empty text is NULL."""
    return Pool(lambda raw: strings.code(raw.decode("utf-8", "replace")) if raw else NULL)


def per_text(
    strings: Strings, codes: npt.NDArray[np.integer[Any]], value: Callable[[str], int]
) -> I64:
    """`value` of each code's text, asked once per text that occurs; NULL codes are the empty
    text.
    """
    present = np.zeros(len(strings) + 1, np.bool_)
    present[codes] = True
    table = np.zeros(len(strings) + 1, np.int64)
    for code in np.flatnonzero(present).tolist():
        table[code] = value(strings[code] if code < len(strings) else "")
    found: I64 = table[codes]
    return found
