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
from profharness.secrets.names import MARKER, is_loose_secret, is_secret
from profharness.secrets.patterns import clean_blocks, same_length_marker, secret_spans

NAME_COLUMNS = frozenset({"name", "key", "tag", "variable", "setting", "option", "param", "env"})
VALUE_COLUMNS = frozenset({"value", "val", "text", "content", "string", "data"})
_LARGEST_UNPACKED = 64 << 20
_LONGEST_NAME = 128
_CACHED_BYTES = 4096
_RUN = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{8,}")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")

Cleaned = tuple[bytes, Counter[str]]


@dataclass(frozen=True)
class Cell:
    """What a cell holds, and the name of its column; or what the cell beside it calls it."""

    raw: bytes
    is_text: bool
    column: str = ""
    called: str = ""


def cleaned(cell: Cell) -> Cleaned:
    """The value without secrets, and how many of each variable or kind there were; texts that
    repeat are looked at once. A blob of a binary format keeps its length.
    """
    return (_cached if len(cell.raw) <= _CACHED_BYTES else _cleaned)(cell)


def _cleaned(cell: Cell) -> Cleaned:
    found: Counter[str] = Counter()
    if not cell.is_text and cell.raw.startswith(GZIP):
        return _packed(cell)
    if not cell.is_text and _BINARY.search(cell.raw):
        return _binary(cell.raw)
    text = cell.raw.decode("utf-8", "replace")
    # a column may be called `token` and hold words
    for name, judge in ((cell.called, is_secret), (cell.column, is_loose_secret)):
        if name and len(name) <= _LONGEST_NAME and judge(name, text):
            found[name] += 1
            return MARKER.encode(), found
    return b"".join(clean_blocks((cell.raw,), found)), found


@lru_cache(maxsize=1 << 14)
def _cached(cell: Cell) -> Cleaned:
    return _cleaned(cell)


def _packed(cell: Cell) -> Cleaned:
    raw = cell.raw
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = unpacker.decompress(raw, _LARGEST_UNPACKED)
    except zlib.error:
        return _binary(raw)
    if not unpacker.eof or unpacker.unused_data:
        return _binary(raw)
    clean, found = _cleaned(replace(cell, raw=plain))
    return (gzip.compress(clean, mtime=0) if found else raw), found


def _binary(raw: bytes) -> Cleaned:
    """Lengths may stand anywhere in it, so that nothing may move."""
    found: Counter[str] = Counter()
    changed = bytearray(raw)
    for run in _RUN.finditer(raw):
        for start, stop, label in secret_spans(run[0]):
            found[label] += 1
            changed[run.start() + start : run.start() + stop] = same_length_marker(stop - start)
    return bytes(changed), found
