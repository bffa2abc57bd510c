"""The rows of one stretch of a Kineto file, as small as they can be sent from one process to
another, and how they are put behind the rows of what stands before them in the file.

Codes of texts, devices, streams and geometry count from zero in each stretch, in the order in which
they are met there. They become those of the whole file in the same order, so that the rows are
those which one reading gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from profharness.readers.bytes.json_stretches import Stretch
from profharness.readers.kineto.comms import Spoken
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.records import Triple
from profharness.trace.columns.build import Growing, Pool
from profharness.trace.columns.column import Column, is_repeated, packed, repeated, unpacked
from profharness.trace.columns.table import NULL

_TABLES = ("kernels", "copies", "calls", "ops", "marks", "frames", "memory", "series")
_TEXTS: Final = ("name", "collective", "shapes", "types", "concrete", "strides", "kernel")
_DEVICES: Final = ("device", "from_device", "to_device")
_STREAMS: Final = ("stream",)
_GEOMETRY: Final = ("grid", "block")
_SPOKEN: Final = ("spoken",)


@dataclass(frozen=True)
class PackedTable:
    """One table: the names of its columns, and the columns as `column.packed` makes them."""

    names: tuple[str, ...]
    columns: tuple[Any, ...]


@dataclass(frozen=True)
class PackedRows:
    """All that `KinetoRows` learned of a stretch; tables in the order of `_TABLES`, what codes
    stand for in the order of the codes.
    """

    stretch: Stretch
    tables: tuple[PackedTable, ...]
    texts: tuple[str, ...]
    devices: tuple[str, ...]
    streams: tuple[str, ...]
    geometry: tuple[bytes | Triple, ...]
    spoken: tuple[Spoken, ...]
    names: tuple[tuple[int, int, str], ...]
    left_out: Counter[str]
    repairs: Counter[str]
    odd: Counter[str]
    has_dispatch_kind: bool
    is_known: bool
    latest_ns: int


def pack(rows: KinetoRows, stretch: Stretch | None) -> PackedRows | None:
    """The rows of a stretch, which are used up. None where it cannot be joined, or where it holds
    ranges with counters, which are few and are kept as events.
    """
    if stretch is None or len(rows.ranges):
        return None
    return PackedRows(
        stretch,
        tuple(_packed_table(getattr(rows, name)) for name in _TABLES),
        tuple(rows.strings.texts),
        tuple(rows.devices),
        tuple(rows.streams),
        tuple(rows.geometry),
        tuple(rows.spoken),
        rows.named.recorded,
        rows.left_out,
        rows.repairs,
        Counter(rows.odd),
        rows.has_dispatch_kind,
        rows.is_known,
        rows.latest_ns,
    )


def _packed_table(table: Growing) -> PackedTable:
    columns = table.narrowest()
    return PackedTable(tuple(columns), tuple(map(packed, columns.values())))


def add_packed(rows: KinetoRows, behind: PackedRows) -> None:
    """Put the rows of the next stretch behind those that there are."""
    new = {
        _TEXTS: _table_of([rows.strings.code(text) for text in behind.texts]),
        _DEVICES: _codes(rows.devices, behind.devices),
        _STREAMS: _codes(rows.streams, behind.streams),
        _GEOMETRY: _codes(rows.geometry, behind.geometry),
        _SPOKEN: _codes(rows.spoken, behind.spoken),
    }
    codes = {column: table for columns, table in new.items() for column in columns}
    for name, table in zip(_TABLES, behind.tables, strict=True):
        columns = dict(zip(table.names, map(unpacked, table.columns), strict=True))
        growing: Growing = getattr(rows, name)
        growing.extend(
            {
                name: _recoded(column, codes[name]) if name in codes else column
                for name, column in columns.items()
            }
        )
    rows.named.extend(behind.names)
    rows.left_out.update(behind.left_out)
    rows.repairs.update(behind.repairs)
    rows.odd.update(behind.odd)
    rows.has_dispatch_kind |= behind.has_dispatch_kind
    rows.is_known |= behind.is_known
    rows.latest_ns = max(rows.latest_ns, behind.latest_ns)


def _codes(pool: Pool[Any], keys: Sequence[Any]) -> Column:
    return _table_of([pool[key] for key in keys])


def _table_of(codes: list[int]) -> Column:
    """The new code of each old one, and of NULL (-1), which stays what it is."""
    return np.array([*codes, NULL], np.int32)


def _recoded(column: Column, new: Column) -> Column:
    if is_repeated(column) and len(column):
        return repeated(new[column[0]], np.int64, len(column))
    recoded: Column = new[column]
    return recoded
