"""The packets of a Perfetto trace, decoded without a schema, to say which ones of two differ."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from itertools import zip_longest

SHOWN = 240
NAMED = 5  # so many differing packets are named


def difference(old: bytes, new: bytes) -> tuple[str, str]:
    """What two traces that differ in their bytes hold otherwise, a text for each."""
    if not old or not new:
        return ("a trace" if old else "no trace", "a trace" if new else "no trace")
    try:
        left, right = [list(packets(_plain(data))) for data in (old, new)]
    except ValueError as error:
        return (f"sha {_sha(old)}", f"sha {_sha(new)} (not readable as packets: {error})")
    if left == right:
        return ("the same packets, compressed otherwise", "the same packets, compressed otherwise")
    pairs = zip_longest(left, right, fillvalue=b"")
    other = [(number, a, b) for number, (a, b) in enumerate(pairs) if a != b]
    where = ", ".join(str(number) for number, _, _ in other[:NAMED])
    more = "" if len(other) <= NAMED else f" and {len(other) - NAMED} more"
    number, a, b = other[0]
    order = ", the same ones in another order" if sorted(left) == sorted(right) else ""
    head = f"packets {where}{more} differ{order}; packet {number}: "
    texts = text(a), text(b)
    same = next(
        (at for at, (x, y) in enumerate(zip(*texts, strict=False)) if x != y), min(map(len, texts))
    )
    start = max(0, same - 80)
    return (
        f"{len(left)} packets; {head}{texts[0][start : start + SHOWN]}",
        f"{len(right)} packets; {head}{texts[1][start : start + SHOWN]}",
    )


def packets(data: bytes) -> Iterator[bytes]:
    """The bytes of each packet. Raises ValueError for data that is no trace."""
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            yield value
        else:
            raise ValueError(f"a trace holds packets alone, not field {number}")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers and their values. Raises ValueError for other data."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"wire type {wire}")
        size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else _varint(data, at)
        if at + size > len(data):
            raise ValueError("cut off")
        part = data[at : at + size]
        at += size
        yield tag >> 3, part if wire == 2 else int.from_bytes(part, "little")


def text(message: bytes, depth: int = 0) -> str:
    """The message in words: field numbers and values; what reads as a message is taken as one."""
    return (
        "{"
        + " ".join(f"{number}: {_value(value, depth)}" for number, value in fields(message))
        + "}"
    )


def _value(value: int | bytes, depth: int) -> str:
    if isinstance(value, int):
        return str(value)
    if value.isascii() and value.decode("ascii").isprintable():
        return repr(value.decode("ascii"))
    if depth < 8:
        try:
            return text(value, depth + 1)
        except ValueError:
            pass
    return repr(value)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number of more than 10 bytes")


def _plain(data: bytes) -> bytes:
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
