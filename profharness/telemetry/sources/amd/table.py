"""One device's `gpu_metrics`: looked at once to learn what it holds, then copied as it is at every
tick.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from profharness.telemetry.sources import Taken
from profharness.telemetry.sources.amd.layouts import HEADER, MAX_BYTES, Field, Layout, layout_of

XCC_PER_PARTITION = 8
_ZERO_IS_UNSET = frozenset(
    {"temperature_edge", "temperature_hotspot", "temperature_memory", "stamp"}
)
CHANGED = "gpu_metrics changed its layout"
_GAP = 64  # bytes: what lies between two wanted parts of a table is left out where it is more


class Shape(NamedTuple):
    """The open file, and the size and the first bytes that the table keeps while no other driver is
    loaded.
    """

    handle: int
    size: int
    head: bytes


class Table:
    """The table of one device. `open` is called first; `read` raises OSError and ValueError."""

    def __init__(self, path: str) -> None:
        self.version = ""
        self._path = path
        self._handle = -1
        self.shape = Shape(-1, -1, b"")
        self._data = b""
        self._fields: Mapping[str, Field] = {}
        self._busy: tuple[Field, ...] = ()

    def open(self) -> str:
        """Why the table cannot be used; empty where it can."""
        try:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self._data = os.pread(self._handle, MAX_BYTES, 0)
        except OSError as error:
            return f"{self._path} cannot be read ({error.strerror})"
        layout = layout_of(self._data)
        if isinstance(layout, str):
            return layout
        self.version = layout.version
        self.shape = Shape(
            self._handle,
            layout.size,
            self._data[: HEADER.size + (4 if layout.attributes >= 0 else 0)],
        )
        self._fields = layout.fields
        self._busy = self._busy_fields(layout)
        return ""

    def _busy_fields(self, layout: Layout) -> tuple[Field, ...]:
        if layout.xcps is not None:
            first, stride = layout.xcps.first, layout.xcps.stride
            return tuple(
                Field(first + place * stride, "I", XCC_PER_PARTITION)
                for place in range(min(self.partitions, layout.xcps.partitions))
            )
        return (self._fields["busy"],) if "busy" in self._fields else ()

    def read(self) -> bytes:
        """The table. Raises OSError, and ValueError when it changed its shape (another driver was
        loaded).
        """
        handle, size, head = self.shape
        data = os.pread(handle, size + 1, 0)  # one more, to see that it has grown
        if len(data) != size or not data.startswith(head):
            raise ValueError(CHANGED)
        return data

    def has(self, name: str) -> bool:
        """Whether the field exists here and was set when the table was opened."""
        return name in self._fields and bool(self._set(self.field(name)))

    def value(self, name: str) -> int | None:
        """The field's (first) value when the table was opened; None where it is not here or was not
        set.
        """
        positions = self._set(self.field(name)) if name in self._fields else []
        return positions[0][1] if positions else None

    def field(self, name: str) -> Taken:
        """Where the field's values stand in the table."""
        return _taken(self._fields[name], zero_is_unset=name in _ZERO_IS_UNSET)

    @property
    def partitions(self) -> int:
        """Number of partitions; 1 where the table does not say."""
        return max(self.value("partitions") or 1, 1)

    def busy(self, partition: int) -> Taken | None:
        """Busy per cent of the compute dies of a partition; None where the table has none."""
        return _taken(self._busy[partition]) if partition < len(self._busy) else None

    def busy_dies(self, partition: int) -> tuple[Taken, ...]:
        """The same of each compute die that there is."""
        whole = self.busy(partition)
        if whole is None:
            return ()
        width = struct.calcsize(whole.code)
        return tuple(
            whole._replace(offset=whole.offset + place * width, repeat=1)
            for place, _ in self._set(whole)
        )

    def _set(self, taken: Taken) -> list[tuple[int, int]]:
        """Place and value of those that were set when the table was opened."""
        return set_values(self._data, taken)


def set_values(data: bytes, taken: Taken) -> list[tuple[int, int]]:
    """Place and value of those that are set in a table."""
    values = struct.unpack_from(f"<{taken.repeat}{taken.code}", data, taken.offset)
    return [
        (place, value)
        for place, value in enumerate(values)
        if value != taken.unset and (value or not taken.zero_is_unset)
    ]


def _taken(field: Field, *, zero_is_unset: bool = False) -> Taken:
    offset, code, repeat = field
    unset = (1 << 8 * struct.calcsize(code)) - 1 if code.isupper() else -1
    return Taken(offset, code, repeat, unset, zero_is_unset)


class Cut(NamedTuple):
    """Bytes of a table, from `start` to `end`, that stand from `at` on in what is kept of it."""

    start: int
    end: int
    at: int


def cuts(wanted: Iterable[Taken]) -> tuple[Cut, ...]:
    """The parts of a table in which all of `wanted` stand, in order; the first begins with the
    table.
    """
    parts: list[Cut] = []
    for start, end in sorted(
        (taken.offset, taken.offset + taken.repeat * struct.calcsize(taken.code))
        for taken in wanted
    ):
        if parts and start <= parts[-1].end + _GAP:
            parts[-1] = parts[-1]._replace(end=max(end, parts[-1].end))
        else:
            before = parts[-1].at + parts[-1].end - parts[-1].start if parts else 0
            parts.append(Cut(start if parts else 0, end, before))
    return tuple(parts)


def kept(taken: Taken, parts: Sequence[Cut]) -> Taken:
    """The positions of the same values in what is kept of the table."""
    part = next(part for part in parts if part.start <= taken.offset < part.end)
    return taken._replace(offset=taken.offset - part.start + part.at)
