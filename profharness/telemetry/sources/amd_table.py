"""Reads one device's `gpu_metrics` again and again: every missing-value convention becomes None here."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Literal

from profharness.telemetry.sources.amd_layouts import HEADER, MAX_BYTES, Field, Layout, layout_of

XCC_PER_PARTITION = 8
_ZERO_IS_UNSET = frozenset({"temperature_edge", "temperature_hotspot", "temperature_memory", "stamp"})


class _Reader:
    """One field: how to take it out of the table, and which raw value means that the driver left it alone."""

    __slots__ = ("_offset", "_table", "_unpack", "_unset", "_zero_unset")

    def __init__(self, table: Table, field: Field, *, zero_unset: bool = False) -> None:
        offset, code, count = field
        packed = struct.Struct(f"<{count}{code}")
        self._unpack = packed.unpack_from
        self._table = table
        self._offset = offset
        bits = 8 * struct.calcsize(code)
        self._unset = (1 << bits) - 1 if code.isupper() else -1
        self._zero_unset = zero_unset

    def one(self) -> int | None:
        value: int = self._unpack(self._table.data, self._offset)[0]
        return None if value == self._unset or (self._zero_unset and not value) else value

    def all(self) -> list[int]:
        """The values that are set."""
        unset = self._unset
        return [value for value in self._unpack(self._table.data, self._offset) if value != unset]

    def mean(self) -> int | None:
        """Mean over the values that are set, rounded."""
        found = self.all()
        return round(sum(found) / len(found)) if found else None

    def total(self) -> int | None:
        found = self.all()
        return sum(found) if found else None


class Table:
    """The table of one device at its last read. Raises OSError and ValueError from `read`, never from the getters."""

    def __init__(self, path: str) -> None:
        self.data = b""
        self.version = ""
        self._path = path
        self._handle: int | None = None
        self._size = -1
        self._head = b""
        self._readers: dict[str, _Reader] = {}
        self._busy: tuple[_Reader, ...] = ()

    def open(self) -> str:
        """Why the table cannot be used; empty where it can."""
        try:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self.data = os.pread(self._handle, MAX_BYTES, 0)
        except OSError as error:
            return f"{self._path} cannot be read ({error.strerror})"
        found = layout_of(self.data)
        if isinstance(found, str):
            return found
        self._size = found.size
        self.version = found.version
        self._head = self.data[:HEADER.size + (4 if found.attributes >= 0 else 0)]
        self._readers = {name: _Reader(self, field, zero_unset=name in _ZERO_IS_UNSET) for name, field in found.fields.items()}
        self._busy = self._busy_readers(found)
        return ""

    def _busy_readers(self, layout: Layout) -> tuple[_Reader, ...]:
        if layout.xcps is not None:
            first, stride = layout.xcps.first, layout.xcps.stride
            return tuple(_Reader(self, Field(first + place * stride, "I", XCC_PER_PARTITION))
                         for place in range(min(self.partitions, layout.xcps.partitions)))
        return (self._readers["busy"],) if "busy" in self._readers else ()

    def read(self) -> None:
        """Raises OSError, and ValueError when the table changed its shape (another driver was loaded)."""
        assert self._handle is not None
        self.data = os.pread(self._handle, MAX_BYTES, 0)
        if len(self.data) != self._size or not self.data.startswith(self._head):
            raise ValueError("gpu_metrics changed its layout")

    def has(self, name: str) -> bool:
        """Whether the field exists here and is set."""
        reader = self._readers.get(name)
        return reader is not None and bool(reader.all()) and (name not in _ZERO_IS_UNSET or reader.one() is not None)

    def taker(self, name: str, how: Literal["one", "mean", "total"] = "one") -> Callable[[], int | None]:
        """What gives the field's value at the last read: its first (or only) one, the mean or the sum of all that are set."""
        reader = self._readers[name]
        return {"one": reader.one, "mean": reader.mean, "total": reader.total}[how]

    @property
    def partitions(self) -> int:
        """Number of partitions; 1 where the table does not say."""
        found = self._readers["partitions"].one() if "partitions" in self._readers else None
        return max(found or 1, 1)

    def busy(self, partition: int) -> list[int]:
        """Busy per cent of each compute die of a partition, those that are set; empty where the table has none."""
        return self._busy[partition].all() if partition < len(self._busy) else []
