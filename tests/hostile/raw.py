"""Changes of bytes that need no knowledge of the format."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.hostile import extremes

Change = Callable[[bytes, random.Random], bytes]


def _span(data: bytes, rng: random.Random, most: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randrange(1, most))


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def replace_bytes(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.randbytes(end - start) + data[end:]


def set_bytes(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice((b"\0", b"\xff", b"\x80", b" ")) * (end - start) + data[end:]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def truncate_little(data: bytes, rng: random.Random) -> bytes:
    return data[: max(0, len(data) - rng.randrange(1, 40))]


def drop(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng, rng.choice((8, 512, 8192)))
    return data[:start] + data[end:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng, rng.choice((8, 512, 8192)))
    return data[:end] + data[start:end] * rng.choice((1, 2, 50)) + data[end:]


def insert(data: bytes, rng: random.Random) -> bytes:
    start, _ = _span(data, rng)
    return data[:start] + rng.choice(extremes.BYTES) + data[start:]


def append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice((rng.randbytes(200), b"\0" * 4096, data[:3000], b"}", b"\n\n\n"))


def empty(data: bytes, rng: random.Random) -> bytes:
    return b""


CHANGES: tuple[Change, ...] = (
    flip_bits, flip_bits, replace_bytes, set_bytes, truncate, truncate_little, drop, repeat, insert,
    append,
)  # fmt: skip


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The bytes with one change, and its name."""
    chosen = empty if rng.random() < 0.005 else rng.choice(CHANGES)
    return chosen(data, rng), f"raw.{chosen.__name__}"
