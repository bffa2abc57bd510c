"""Changes of protobuf messages, field by field, at any depth: numbers, lengths, kinds, order."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from tests.hostile import extremes, raw

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_BORDERS = tuple(
    (1 << bits) + more for bits in (0, 7, 8, 14, 31, 32, 53, 62, 63, 64) for more in (-1, 0, 1)
)
_DOUBLES = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, 2.0**63, -1.0)
_LEVELS = 12


@dataclass
class Field:
    """One field: its number, how its value is written, and the value's bytes, which are changed
    apart from the length in front of them (`claimed`, where it is to lie).
    """

    number: int
    wire: int
    value: bytes
    claimed: int | None = None

    def encoded(self) -> bytes:
        head = varint(self.number << 3 | self.wire)
        if self.wire != _BYTES:
            return head + self.value
        return head + varint(len(self.value) if self.claimed is None else self.claimed) + self.value


def varint(number: int) -> bytes:
    """A number as protobuf writes it; one beyond 64 bits takes more bytes than any reader allows."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    return None


def parse(data: bytes) -> list[Field] | None:
    """The fields of a message; None where the bytes are none."""
    fields, at = [], 0
    while at < len(data):
        head = _read_varint(data, at)
        if head is None or head[0] >> 3 == 0:
            return None
        number, wire, start = head[0] >> 3, head[0] & 7, head[1]
        if wire == _VARINT:
            read = _read_varint(data, start)
            end = None if read is None else read[1]
        elif wire == _BYTES:
            read = _read_varint(data, start)
            start, end = (start, None) if read is None else (read[1], read[1] + read[0])
        else:
            end = start + {_FIXED64: 8, _FIXED32: 4}.get(wire, 1 << 62)
        if end is None or end > len(data):
            return None
        fields.append(Field(number, wire, data[start:end]))
        at = end
    return fields


def _number(field: Field, rng: random.Random) -> None:
    field.wire = _VARINT
    field.value = varint(rng.choice((*_BORDERS, rng.randrange(1 << 64), 1 << 80)))


def _change_field(fields: list[Field], at: int, rng: random.Random) -> str:
    """One change of a field that is not entered."""
    field, kind = fields[at], rng.randrange(10)
    if kind == 0:
        del fields[at]
        return "remove"
    if kind == 1:
        fields[at:at] = [field] * rng.choice((1, 2, 200))
        return "repeat"
    if kind == 2:
        other = rng.randrange(len(fields))
        fields[at], fields[other] = fields[other], field
        return "swap"
    if kind == 3:
        field.number = rng.choice((0, 1, 2, 3, 8, 58, 60, 1 << 28, rng.randrange(1, 130)))
        return "renumber"
    if kind == 4:
        field.wire = rng.randrange(8)
        return "rewire"
    if kind == 5 and field.wire == _BYTES:
        field.claimed = rng.choice((0, 1, len(field.value) + 1, 1 << 31, 1 << 63, 1 << 40))
        return "claim"
    if kind == 6 and field.wire == _BYTES:
        for _ in range(rng.choice((3, 100, 3000))):
            field.value = Field(field.number, _BYTES, field.value).encoded()[:200_000]
        return "nest"
    if field.wire == _VARINT:
        _number(field, rng)
        return "number"
    if field.wire == _FIXED64:
        field.value = struct.pack("<d", rng.choice(_DOUBLES))
        return "double"
    field.value = rng.choice(
        (*extremes.BYTES, extremes.text(rng).encode(), raw.flip_bits(field.value, rng), b"")
    )
    return "content"


def _changed(data: bytes, rng: random.Random, level: int) -> tuple[bytes, str] | None:
    fields = parse(data)
    if not fields:
        return None
    at = rng.randrange(len(fields))
    if fields[at].wire == _BYTES and level < _LEVELS and rng.random() < 0.8:
        inner = _changed(fields[at].value, rng, level + 1)
        if inner is not None:
            fields[at].value = inner[0]
            return b"".join(field.encoded() for field in fields), inner[1]
    name = _change_field(fields, at, rng)
    return b"".join(field.encoded() for field in fields), name


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The message with one change, and its name."""
    changed = _changed(data, rng, 0)
    return raw.change(data, rng) if changed is None else (changed[0], f"protobuf.{changed[1]}")
