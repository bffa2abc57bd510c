"""Single values of tables without their secrets: texts, and blobs that hold text, compressed text
or anything else. Pure.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from profharness.rundir.blocks import GZIP
from profharness.secrets.names import MARKER, is_loose_secret, is_secret, is_secret_beside
from profharness.secrets.patterns import (
    clean_blocks,
    may_hold_secrets,
    same_length_marker,
    secret_spans,
)

NAME_COLUMNS = frozenset({"name", "key", "tag", "variable", "setting", "option", "param", "env"})
VALUE_COLUMNS = frozenset({"value", "val", "text", "content", "string", "data"})
_LARGEST_UNPACKED = 64 << 20
_LONGEST_NAME = 128
_CACHED_BYTES = 4096
_RUN = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{8,}")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # RFC 1950
_CLOSED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
}
"""How what is not unpacked here begins."""

Cleaned = tuple[bytes, Counter[str]]


@dataclass(frozen=True)
class Cell:
    """What a cell holds, and the name of its column; or what the cell of its row that names it
    says.
    """

    raw: bytes
    is_text: bool
    column: str = ""
    called: str = ""
    beside: str = ""
    """The text of the cell before it, which may be its name."""
    is_fixed: bool = False
    """Whether its length may not change."""


def cleaned(cell: Cell) -> Cleaned:
    """The value without secrets, and how many of each variable or kind there were; texts that
    repeat are looked at once. A blob of a binary format keeps its length.
    """
    return (_cached if len(cell.raw) <= _CACHED_BYTES else _cleaned)(cell)


def _cleaned(cell: Cell) -> Cleaned:
    found: Counter[str] = Counter()
    if not cell.is_text and cell.raw.startswith((GZIP, *_ZLIB)):
        return _packed(cell)
    if cell.is_fixed or (not cell.is_text and _BINARY.search(cell.raw)):
        return _binary(cell.raw)
    text = cell.raw.decode("utf-8", "replace")
    # a column may be called `token` and hold words
    for name, judge in (
        (cell.called, is_secret),
        (cell.beside, is_secret_beside),
        (cell.column, is_loose_secret),
    ):
        if name and len(name) <= _LONGEST_NAME and judge(name, text):
            found[name] += 1
            return MARKER.encode(), found
    # of millions of cells hardly any holds a word of a secret
    if len(cell.raw) <= _CACHED_BYTES and not may_hold_secrets(cell.raw):
        return cell.raw, found
    return b"".join(clean_blocks((cell.raw,), found)), found


def closed(raw: bytes) -> str:
    """As what a blob is packed that is not looked into; empty for all others."""
    if raw.startswith((GZIP, *_ZLIB)):
        try:
            return "" if _unpacked(raw) is not None else "gzip of too much"
        except zlib.error:
            return ""
    return next((name for magic, name in _CLOSED.items() if raw.startswith(magic)), "")


@lru_cache(maxsize=1 << 14)
def _cached(cell: Cell) -> Cleaned:
    return _cleaned(cell)


def _packed(cell: Cell) -> Cleaned:
    raw = cell.raw
    try:
        plain = _unpacked(raw)
    except zlib.error:
        return _binary(raw)
    if plain is None:
        return _binary(raw)
    clean, found = _cleaned(replace(cell, raw=plain))
    if not found:
        return raw, found
    return gzip.compress(clean, mtime=0) if raw.startswith(GZIP) else zlib.compress(clean), found


def _unpacked(raw: bytes) -> bytes | None:
    """What all members of a gzip or a zlib stream hold; None where that is too much to look at.

    Raises zlib.error for what only begins like one.
    """
    parts: list[bytes] = []
    space = _LARGEST_UNPACKED
    while raw:
        unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)
        parts.append(unpacker.decompress(raw, space))
        space -= len(parts[-1])
        if not unpacker.eof:
            if unpacker.unconsumed_tail or not space:
                return None
            raise zlib.error("cut")
        raw = unpacker.unused_data
        if raw and not space:
            return None
    return b"".join(parts)


def _binary(raw: bytes) -> Cleaned:
    """Lengths may stand anywhere in it, so that nothing may move."""
    found: Counter[str] = Counter()
    changed = bytearray(raw)
    for run in _RUN.finditer(raw):
        for start, stop, label in secret_spans(run[0]):
            found[label] += 1
            changed[run.start() + start : run.start() + stop] = same_length_marker(stop - start)
    return bytes(changed), found
