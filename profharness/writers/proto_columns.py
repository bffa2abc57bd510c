"""Many protobuf messages of one shape at a time, from NumPy columns.

Every record gets a row of byte slots wide enough for its longest form. Each field writes its bytes into
its own slots and says which of them a row uses; squeezing out the unused slots leaves the encoded
messages, one after the other. The result is canonical protobuf: varints are as short as they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from profharness.writers import wire

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
Lengths = I64 | int
_TRACE_PACKET = 1
_GROUP = np.uint64(7)
_LOW7 = np.uint64(0x7F)


class Field(Protocol):
    """One field of a message shape; rows are records."""

    @property
    def width(self) -> int:
        """Slots that the longest row needs."""

    @property
    def lengths(self) -> Lengths:
        """Bytes that each row uses; a plain number where all rows use the same."""

    def fill(self, slots: U8, used: Mask) -> None:
        """Write into `slots` [rows, width] and clear `used` (all set at first) where a row has no byte."""


@dataclass(frozen=True)
class Encoded:
    """Messages one after the other, and the bytes that each has."""

    data: U8
    sizes: I64


@dataclass(frozen=True)
class Same:
    """Encoded fields that are equal in every row."""

    data: bytes

    @property
    def width(self) -> int:
        return len(self.data)

    @property
    def lengths(self) -> Lengths:
        return len(self.data)

    def fill(self, slots: U8, used: Mask) -> None:  # noqa: ARG002  the protocol's signature; every slot is used
        slots[:] = np.frombuffer(self.data, np.uint8)


class Varint:
    """A varint field of non-negative numbers; rows outside `present` have no such field."""

    def __init__(self, number: int, values: Ints, present: Mask | None = None) -> None:
        self._tag = wire.tag(number, wire.VARINT)
        self._values = values.astype(np.uint64)
        if present is not None:
            self._values *= present
        self._present = present
        self._longer = _continued(self._values)
        self.width = len(self._tag) + 1 + len(self._longer)

    @property
    def lengths(self) -> Lengths:
        return _lengths(len(self._tag) + 1, self._longer, self._present)

    def fill(self, slots: U8, used: Mask) -> None:
        head = len(self._tag)
        slots[:, :head] = np.frombuffer(self._tag, np.uint8)
        if self._present is not None:
            used[:, : head + 1] = self._present[:, None]
        _fill_varint(self._values, self._longer, slots[:, head:], used[:, head:])


class Double:
    """A 64-bit floating-point field; rows outside `present` have no such field."""

    def __init__(self, number: int, values: npt.NDArray[np.float64], present: Mask | None = None) -> None:
        self._tag = wire.tag(number, wire.I64BIT)
        self._values = values
        self._present = present
        self.width = len(self._tag) + 8

    @property
    def lengths(self) -> Lengths:
        return self.width if self._present is None else self._present * np.int64(self.width)

    def fill(self, slots: U8, used: Mask) -> None:
        head = len(self._tag)
        slots[:, :head] = np.frombuffer(self._tag, np.uint8)
        slots[:, head:] = np.ascontiguousarray(self._values, "<f8").view(np.uint8).reshape(-1, 8)
        if self._present is not None:
            used[:] = self._present[:, None]


class Ragged:
    """Encoded fields of any length per row: `data` holds the rows' bytes one after the other, `sizes` how many each has."""

    def __init__(self, data: U8, sizes: I64) -> None:
        self._data = data
        self._sizes = sizes
        self.width = int(sizes.max()) if len(sizes) else 0

    @property
    def lengths(self) -> Lengths:
        return self._sizes

    def fill(self, slots: U8, used: Mask) -> None:
        inside = np.arange(self.width) < self._sizes[:, None]
        slots[inside] = self._data
        used[:] = inside


class Message:
    """A nested message; rows outside `present` have no such field, whatever its own fields say."""

    def __init__(self, number: int, fields: Sequence[Field], present: Mask | None = None) -> None:
        self._tag = wire.tag(number, wire.LENGTH)
        self._fields = tuple(fields)
        self._present = present
        inner = _total(self._fields)
        self._inner = inner
        size = np.asarray(inner, np.uint64).reshape(-1)
        self._size = size
        self._longer = _continued(size)
        self.width = len(self._tag) + 1 + len(self._longer) + sum(f.width for f in self._fields)

    @property
    def lengths(self) -> Lengths:
        size = _lengths(len(self._tag) + 1, self._longer, None)
        if isinstance(self._inner, int) and not isinstance(size, int):
            size = int(size[0])  # a size that is equal in all rows
        total = self._inner + size
        return total if self._present is None else self._present * (total + np.zeros(1, np.int64))

    def fill(self, slots: U8, used: Mask) -> None:
        head, at = len(self._tag), len(self._tag) + 1 + len(self._longer)
        slots[:, :head] = np.frombuffer(self._tag, np.uint8)
        _fill_varint(self._size, self._longer, slots[:, head:at], used[:, head:at])
        _fill(self._fields, slots[:, at:], used[:, at:])
        if self._present is not None:
            used &= self._present[:, None]


def integers(number: int, values: Ints, present: Mask | None = None) -> Field:
    """A varint field; cheap where all rows agree."""
    if len(values) and (present is None or present.all()) and (low := int(values.min())) == values.max():
        return Same(wire.integer(number, low))
    return Varint(number, values, present)


def encode(fields: Sequence[Field], rows: int) -> Encoded:
    """`rows` messages of these fields without any framing."""
    width = sum(field.width for field in fields)
    slots = np.empty((rows, width), np.uint8)
    used = np.ones((rows, width), np.bool_)
    _fill(fields, slots, used)
    sizes = np.broadcast_to(np.asarray(_total(fields), np.int64), (rows,))
    return Encoded(slots.reshape(-1)[used.reshape(-1)], sizes)


def packets(fields: Sequence[Field], rows: int) -> Encoded:
    """`rows` records `Trace.packet` made of these `TracePacket` fields."""
    return encode((Message(_TRACE_PACKET, fields),), rows)


def interleave(second: Mask, first_rows: Encoded, second_rows: Encoded) -> U8:
    """Bytes of two sets of messages in one order; `second` says per message from which set it comes."""
    sizes = np.empty(len(second), np.int64)
    sizes[~second], sizes[second] = first_rows.sizes, second_rows.sizes
    from_second = np.repeat(second, sizes)
    data = np.empty(len(from_second), np.uint8)
    data[~from_second], data[from_second] = first_rows.data, second_rows.data
    return data


def _fill(fields: Sequence[Field], slots: U8, used: Mask) -> None:
    at = 0
    for field in fields:
        field.fill(slots[:, at : at + field.width], used[:, at : at + field.width])
        at += field.width


def _total(fields: Sequence[Field]) -> Lengths:
    total: Lengths = 0
    for field in fields:
        total = total + field.lengths
    return total


def _continued(values: U64) -> list[Mask]:
    """For byte 1, 2, ... of the varints: which values have such a byte; as long as any value has."""
    if not len(values):
        return []
    top = int(values.max())
    return [values >= np.uint64(1 << 7 * k) for k in range(1, (max(top.bit_length(), 1) + 6) // 7)]


def _lengths(base: int, longer: Sequence[Mask], present: Mask | None) -> Lengths:
    if not longer:
        return base if present is None else present * np.int64(base)
    total = np.full(len(longer[0]), base, np.int64)
    for mask in longer:
        total += mask
    return total if present is None else total * present


def _fill_varint(values: U64, longer: Sequence[Mask], slots: U8, used: Mask) -> None:
    """Bytes of varints: seven bits each, lowest first, the top bit set where another one follows."""
    rest = values
    for k in range(len(longer) + 1):
        byte = (rest & _LOW7).astype(np.uint8)
        if k < len(longer):
            byte |= longer[k].view(np.uint8) << np.uint8(7)
            rest = rest >> _GROUP
        slots[:, k] = byte
        if k:
            used[:, k] = longer[k - 1][:] if len(longer[k - 1]) == len(used) else bool(longer[k - 1][0])
