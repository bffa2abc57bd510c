"""Many protobuf messages of one shape at a time, from NumPy columns.

Every record gets a row of byte slots wide enough for its longest form, which begin as what all rows
have in common. Each field writes what differs into its own slots and says which of them a row uses;
squeezing out the unused slots leaves the encoded messages, one after the other. The result is
canonical protobuf: varints are as short as they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from profharness.writers.protobuf import wire
from profharness.writers.protobuf.varints import U8, Ints, Mask, Varints, put

I64 = npt.NDArray[np.int64]
Lengths = I64 | int
_TRACE_PACKET = 1


class Field(Protocol):
    """One field of a message shape; rows are records."""

    @property
    def template(self) -> bytes:
        """The slots that the longest row needs, with what is equal in all rows; zero elsewhere."""

    @property
    def lengths(self) -> Lengths:
        """Bytes that each row uses; a plain number where all rows use the same."""

    def fill(self, slots: U8, used: Mask) -> None:
        """Write what differs into `slots` [rows, width], which hold the template, and clear `used`
        (all set at first) where a row has no byte.
        """


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
    def template(self) -> bytes:
        return self.data

    @property
    def lengths(self) -> Lengths:
        return len(self.data)

    def fill(self, slots: U8, used: Mask) -> None:
        """Nothing differs."""


class Varint:
    """A varint field of non-negative numbers; rows outside `present` have no such field."""

    def __init__(self, number: int, values: Ints, present: Mask | None = None) -> None:
        self._tag = wire.tag(number, wire.VARINT)
        self._present = present
        self._value = Varints(values if present is None else values * present)
        self.template = self._tag + bytes(self._value.width)

    @property
    def lengths(self) -> Lengths:
        return _where(self._present, len(self._tag) + self._value.lengths)

    def fill(self, slots: U8, used: Mask) -> None:
        """Write each row's varint behind the tag, and clear `used` behind its end."""
        head = len(self._tag)
        self._value.fill(slots[:, head:], used[:, head:])
        if self._present is not None:
            used[:, : head + 1] &= self._present[:, None]


class Double:
    """A 64-bit floating-point field; rows outside `present` have no such field."""

    def __init__(
        self, number: int, values: npt.NDArray[np.float64], present: Mask | None = None
    ) -> None:
        self._tag = wire.tag(number, wire.I64BIT)
        self._values = values
        self._present = present
        self.template = self._tag + bytes(8)

    @property
    def lengths(self) -> Lengths:
        return _where(self._present, len(self.template))

    def fill(self, slots: U8, used: Mask) -> None:
        """Write each row's eight bytes, little endian, behind the tag; clear rows without one."""
        put(slots[:, len(self._tag) :], np.ascontiguousarray(self._values, "<f8"))
        if self._present is not None:
            used[:] = self._present[:, None]


class Ragged:
    """Encoded fields of any length per row: `data` holds the rows' bytes one after the other,
    `sizes` how many each has.
    """

    def __init__(self, data: U8, sizes: I64) -> None:
        self._data = data
        self._sizes = sizes
        self.template = bytes(int(sizes.max()) if len(sizes) else 0)

    @property
    def lengths(self) -> Lengths:
        return self._sizes

    def fill(self, slots: U8, used: Mask) -> None:
        """Copy each row's bytes to the front of its slot, and clear `used` behind them."""
        inside = np.arange(len(self.template)) < self._sizes[:, None]
        slots[inside] = self._data
        used[:] = inside


class Message:
    """A nested message; rows outside `present` have no such field, whatever its own fields say."""

    def __init__(self, number: int, fields: Sequence[Field], present: Mask | None = None) -> None:
        self._fields = tuple(fields)
        self._present = present
        self._inner = _total(self._fields)
        tag = wire.tag(number, wire.LENGTH)
        self._fixed = len(tag)
        self._size = None if isinstance(self._inner, int) else Varints(self._inner)
        self._head = tag + (
            bytes(self._size.width) if self._size else wire.varint(int(self._inner))
        )
        self.template = self._head + b"".join(field.template for field in self._fields)

    @property
    def lengths(self) -> Lengths:
        """Tag, the length that the message is preceded by, and the inner fields; 0 if absent."""
        head = len(self._head) if self._size is None else self._fixed + self._size.lengths
        return _where(self._present, self._inner + head)

    def fill(self, slots: U8, used: Mask) -> None:
        """Write each row's length and let the inner fields fill what follows it."""
        at = len(self._head)
        if self._size is not None:
            self._size.fill(slots[:, self._fixed : at], used[:, self._fixed : at])
        _fill(self._fields, slots[:, at:], used[:, at:])
        if self._present is not None:
            used &= self._present[:, None]


def integers(number: int, values: Ints, present: Mask | None = None) -> Field:
    """A varint field; cheap where all rows agree."""
    if (
        len(values)
        and (present is None or present.all())
        and (low := int(values.min())) == values.max()
    ):
        return Same(wire.integer(number, low))
    return Varint(number, values, present)


def encode(fields: Sequence[Field], rows: int) -> Encoded:
    """`rows` messages of these fields without any framing."""
    if not rows:
        return Encoded(np.zeros(0, np.uint8), np.zeros(0, np.int64))
    template = np.frombuffer(b"".join(field.template for field in fields), np.uint8)
    slots = np.empty((rows, len(template)), np.uint8)
    slots[:] = template
    used = np.ones((rows, len(template)), np.bool_)
    _fill(fields, slots, used)
    sizes = np.broadcast_to(np.asarray(_total(fields), np.int64), (rows,))
    return Encoded(slots.reshape(-1)[used.reshape(-1)], sizes)


def packets(fields: Sequence[Field], rows: int) -> Encoded:
    """`rows` records `Trace.packet` made of these `TracePacket` fields."""
    return encode((Message(_TRACE_PACKET, fields),), rows)


def interleave(second: Mask, first_rows: Encoded, second_rows: Encoded) -> U8:
    """Bytes of two sets of messages in one order; `second` says per message from which set it
    comes.
    """
    sizes = np.empty(len(second), np.int64)
    sizes[~second], sizes[second] = first_rows.sizes, second_rows.sizes
    from_second = np.repeat(second, sizes)
    data = np.empty(len(from_second), np.uint8)
    data[~from_second], data[from_second] = first_rows.data, second_rows.data
    return data


def _fill(fields: Sequence[Field], slots: U8, used: Mask) -> None:
    at = 0
    for field in fields:
        width = len(field.template)
        field.fill(slots[:, at : at + width], used[:, at : at + width])
        at += width


def _total(fields: Sequence[Field]) -> Lengths:
    total: Lengths = 0
    for field in fields:
        total = total + field.lengths
    return total


def _where(present: Mask | None, lengths: Lengths) -> Lengths:
    """The lengths, zero in rows outside `present`."""
    return lengths if present is None else np.multiply(present, lengths, dtype=np.int64)
