"""Protobuf messages taken apart without their schema, many at a time.

A message becomes its fields: number, wire type, and the value (varints and fixed numbers) or the
place of its bytes. All messages advance together, one field per step, so the cost is a few NumPy
passes per field.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_STEPS_TOGETHER = 4096  # fields; the longest messages of writers that we know have a few thousand
_MOST_FIELDS = 1 << 20  # further ones of one message: what follows is damage
_FIELD_BYTES = 32  # for so many bytes of all messages one more may stand in long ones together


@dataclass(frozen=True)
class Fields:
    """Fields of many messages. `row` is the message; `start` and `end` bound the bytes of what is
    not a varint.

    Fields of one message keep their order. `damaged` lists the messages whose bytes do not parse to
    their end; the fields before the damage are there.
    """

    row: I64
    number: I64
    wire: I64
    value: U64
    start: I64
    end: I64
    damaged: I64

    def pick(self, number: int, wire: int) -> Fields:
        """The fields of one number and wire type."""
        return self.take((self.number == number) & (self.wire == wire))

    def take(self, where: Mask) -> Fields:
        return Fields(
            self.row[where],
            self.number[where],
            self.wire[where],
            self.value[where],
            self.start[where],
            self.end[where],
            self.damaged,
        )

    def last(self, number: int, rows: int, missing: int = 0) -> I64:
        """One varint per message, the last one where it is repeated; as signed 64-bit numbers."""
        out = np.full(rows, missing, np.int64)
        fields = self.pick(number, VARINT)
        out[fields.row] = fields.value.view(np.int64)
        return out

    def has(self, number: int, rows: int) -> Mask:
        """Which messages have this field, in whatever wire type."""
        out = np.zeros(rows, np.bool_)
        out[self.row[self.number == number]] = True
        return out


def frame(data: memoryview, tag: int, most: int | None = None) -> tuple[I64, I64, int]:
    """Bounds of length-delimited records that follow each other, each after the byte `tag`; of the
    first `most` where that is given.

    Also the offset where this stops: the length of the data, that of the first byte that does not
    fit, or that of the first record too many.
    """
    starts, ends = array("q"), array("q")
    at, size = 0, len(data)
    while at < size:
        if data[at] != tag or len(starts) == most:
            break
        length = shift = 0
        cursor = at + 1
        while cursor < size and shift < 7 * _LONGEST_VARINT:
            byte = data[cursor]
            length |= (byte & 0x7F) << shift
            cursor += 1
            shift += 7
            if byte < 0x80:
                break
        else:
            break
        if cursor + length > size:
            break
        starts.append(cursor)
        at = cursor + length
        ends.append(at)
    return np.frombuffer(starts, np.int64), np.frombuffer(ends, np.int64), at


def scan(data: U8, start: I64, end: I64) -> Fields:
    """Fields of the messages at [start, end) of the data."""
    steps: list[tuple[npt.NDArray[Any], ...]] = []
    damaged: list[I64] = []
    row, at = (
        np.arange(len(start)),
        start.astype(np.int64),
    )  # lengths in damaged data may lead far beyond its end
    stop = end.astype(np.int64)
    while True:
        live = at < stop
        row, at, stop = row[live], at[live], stop[live]
        if not len(row):
            break
        if len(steps) >= _STEPS_TOGETHER:
            left = _MOST_FIELDS + len(data) // _FIELD_BYTES
            for message in range(len(row)):
                step, whole = _alone(data, row[message], int(at[message]), int(stop[message]), left)
                left -= len(step[0])
                steps.append(step)
                damaged.append(row[message : message + (not whole)])
            break
        key, at, fine = _varint(data, at, stop)
        wire = (key & np.uint64(7)).astype(np.int64)
        value, begin, after, readable = _payload(data, wire, at, stop)
        good = fine & readable & (key >> np.uint64(3) > 0)
        damaged.append(row[~good])
        steps.append(
            (
                row[good],
                (key >> np.uint64(3)).astype(np.int64)[good],
                wire[good],
                value[good],
                begin[good],
                after[good],
            )
        )
        row, at, stop = row[good], after[good], stop[good]
    return _joined(steps, damaged)


def _alone(
    data: U8, row: np.int64, at: int, stop: int, most: int
) -> tuple[tuple[npt.NDArray[Any], ...], bool]:
    """The further fields of one message, as a step of `scan` has them, `most` at the most, and
    whether they reach its end. They are read one after the other, which costs less than a step of
    NumPy for each.
    """
    text = memoryview(data)  # type: ignore[arg-type]  # an array has the protocol of buffers
    columns = array("q"), array("q"), array("Q"), array("q"), array("q")
    most = min(most, _MOST_FIELDS)
    while at < stop and len(columns[0]) < most:
        key, begin = _one_varint(text, at, stop)
        wire, value, after = key & 7, 0, begin
        if wire in (VARINT, LENGTH):
            value, begin = _one_varint(text, begin, stop)
            after = begin + (value if wire == LENGTH else 0)
        elif wire in (FIXED64, FIXED32):
            after += 8 if wire == FIXED64 else 4
            value = int.from_bytes(text[begin : min(after, stop)], "little")
        else:
            break
        if begin > stop or after > stop or not key >> 3:
            break
        for column, one in zip(columns, (key >> 3, wire, value, begin, after), strict=True):
            column.append(one)
        at = after
    number, wires, values, begins, ends = (np.array(column) for column in columns)
    step = np.full(len(number), row), number, wires, values.astype(np.uint64), begins, ends
    return step, at == stop


def _one_varint(text: memoryview, at: int, stop: int) -> tuple[int, int]:
    """A varint of 64 bits and the place behind it; a place beyond `stop` where there is none."""
    value = shift = 0
    while at < stop and shift < 7 * _LONGEST_VARINT:
        byte = text[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
    return 0, stop + 1


def _joined(steps: Sequence[tuple[npt.NDArray[Any], ...]], damaged: Sequence[I64]) -> Fields:
    none = np.zeros(0, np.int64)
    if not steps:
        return Fields(none, none, none, none.astype(np.uint64), none, none, none)
    row, number, wire, value, start, end = (
        np.concatenate(column) for column in zip(*steps, strict=True)
    )
    return Fields(row, number, wire, value, start, end, np.concatenate(damaged))


def _varint(data: U8, at: I64, stop: I64) -> tuple[U64, I64, Mask]:
    """Varints at these places: values, the places after them, and whether they end before
    `stop`.
    """
    value = np.zeros(len(at), np.uint64)
    fine = np.zeros(len(at), np.bool_)
    after = at.copy()
    open_ = np.flatnonzero(at < stop)
    for k in range(_LONGEST_VARINT):
        if not len(open_):
            break
        byte = data[after[open_]]
        value[open_] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * k)
        after[open_] += 1
        ended = byte < 0x80
        fine[open_[ended]] = True
        open_ = open_[~ended]
        open_ = open_[after[open_] < stop[open_]]
    return value, after, fine


def _payload(data: U8, wire: I64, at: I64, stop: I64) -> tuple[U64, I64, I64, Mask]:
    """Value, start of bytes, place after, and whether the field fits into its message."""
    varint = (wire == VARINT) | (wire == LENGTH)
    value = np.zeros(len(at), np.uint64)
    begin, fine = at.copy(), np.zeros(len(at), np.bool_)
    value[varint], begin[varint], fine[varint] = _varint(data, at[varint], stop[varint])
    after = begin.copy()
    delimited = wire == LENGTH
    size = np.minimum(value[delimited], np.uint64(1 << 62)).astype(np.int64)
    after[delimited] += size
    for kind, width in ((FIXED64, 8), (FIXED32, 4)):
        fixed = wire == kind
        after[fixed] += width
        fine[fixed] = True
        inside = np.flatnonzero(fixed & (after <= stop))
        for k in range(width):
            value[inside] |= data[at[inside] + k].astype(np.uint64) << np.uint64(8 * k)
    fine &= after <= stop
    return value, begin, after, fine
