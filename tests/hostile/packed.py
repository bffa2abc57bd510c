"""Changes of gzip files: members, headers, trailers, and files that grow a thousandfold."""

from __future__ import annotations

import gzip
import random
import zlib
from functools import cache

from tests.hostile import raw

_FILL = 10 << 20
_MEMBERS = 300


@cache
def _member(byte: bytes) -> bytes:
    return gzip.compress(byte * _FILL, 9, mtime=0)


def pack(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def bomb(data: bytes, rng: random.Random) -> bytes:
    """Behind what was there, 3 GB of blanks, zeros or digits in 3 MB: one member, or many."""
    byte = rng.choice((b" ", b"\0", b"1", b"\n", b"["))
    if rng.random() < 0.5:
        return pack(data) + _member(byte) * _MEMBERS
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = byte * _FILL
    start = deflate.compress(data) + deflate.flush(zlib.Z_FULL_FLUSH)
    one = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    return start + one * _MEMBERS


def cut(data: bytes, rng: random.Random) -> bytes:
    return raw.truncate(pack(data), rng)


def trailer(data: bytes, rng: random.Random) -> bytes:
    """Another checksum or length than that of the content."""
    return pack(data)[:-8] + rng.randbytes(8)


def header(data: bytes, rng: random.Random) -> bytes:
    packed = bytearray(pack(data))
    packed[rng.randrange(2, 10)] = rng.randrange(256)
    return bytes(packed)


def members(data: bytes, rng: random.Random) -> bytes:
    """The content in several members, some of them empty, or with something behind the last."""
    at = rng.randrange(len(data) + 1)
    ends = (b"", b"\0" * 512, b"garbage", pack(b""), pack(data[:100]))
    return pack(data[:at]) + pack(data[at:]) + rng.choice(ends)


def twice(data: bytes, rng: random.Random) -> bytes:
    return pack(pack(data))


def inside(data: bytes, rng: random.Random) -> bytes:
    """Damage in the compressed bytes."""
    return raw.change(pack(data), rng)[0]


CHANGES: tuple[raw.Change, ...] = (cut, trailer, header, members, twice, inside, inside)
_BOMBS = 0.03


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The packed form of plain content with one change, and its name."""
    chosen = bomb if rng.random() < _BOMBS else rng.choice(CHANGES)
    return chosen(data, rng), f"gzip.{chosen.__name__}"
