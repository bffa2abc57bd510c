"""Protobuf wire format for single messages: what a trace holds once or a few times (descriptors,
metadata).

Columns of many records go through `proto_columns`. Format: protobuf encoding, wire types 0
(varint), 1 (64 bit) and 2 (length-delimited); a negative int64 is written as its 64-bit two's
complement.
"""

from __future__ import annotations

from profharness.rundir.shown.screen import without_controls

VARINT, I64BIT, LENGTH = 0, 1, 2
_TRACE_PACKET = b"\x0a"  # Trace.packet = 1, length-delimited
_MASK64 = (1 << 64) - 1
_SHORT = (
    *(bytes((value,)) for value in range(1 << 7)),
    *(bytes((value & 0x7F | 0x80, value >> 7)) for value in range(1 << 7, 1 << 14)),
)
"""Varints of one and two bytes: keys of fields, lengths, ranks."""


def varint(value: int) -> bytes:
    """Base-128 varint of an unsigned or, as two's complement, negative 64-bit number."""
    if 0 <= value < len(_SHORT):
        return _SHORT[value]
    value &= _MASK64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire_type: int) -> bytes:
    """The key that precedes a field's value."""
    return varint(number << 3 | wire_type)


def integer(number: int, value: int) -> bytes:
    """A varint field."""
    return tag(number, VARINT) + varint(value)


def blob(number: int, data: bytes) -> bytes:
    """A bytes field, or a nested message given as its encoded fields."""
    return tag(number, LENGTH) + varint(len(data)) + data


def text(number: int, value: str) -> bytes:
    """A string field in UTF-8; control characters are escaped, and what cannot be encoded (lone
    surrogates) becomes a question mark. The rest is for the viewer to show.
    """
    return blob(number, without_controls(value).encode("utf-8", "replace"))


def packet(*fields: bytes) -> bytes:
    """One `Trace.packet` record made of encoded `TracePacket` fields."""
    body = b"".join(fields)
    return _TRACE_PACKET + varint(len(body)) + body
