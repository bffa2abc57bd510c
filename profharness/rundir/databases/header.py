"""What the first bytes of an SQLite database, of its rollback journal and of its write-ahead log
say (https://www.sqlite.org/fileformat2.html, sections 1.3, 3 and 4.1).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO

MAGIC = b"SQLite format 3\0"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
HEADER_BYTES = 100
LOG_HEADER_BYTES = 32
_LEAF, _INTERIOR = b"\x0d", b"\x05"  # kinds of pages of a table
_TAIL_BYTES = 1 << 20
_SUPER_NAME_BYTES = 4096


@dataclass(frozen=True)
class Header:
    """The first 100 bytes of a database."""

    page_bytes: int
    pages: int
    """Pages as of the last finished write; 0 where the header does not say."""

    counter: int
    free_pages: int
    is_logged: bool
    """Whether it is written with a write-ahead log."""


def header_of(head: bytes) -> Header:
    """The fields of a database's first `HEADER_BYTES`; a short head reads as zeros."""
    head = head[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")
    page_bytes = int.from_bytes(head[16:18], "big")
    counter = int.from_bytes(head[24:28], "big")
    is_valid = head[24:28] == head[92:96]  # else the writer was too old to keep the size
    return Header(
        page_bytes=65536 if page_bytes == 1 else page_bytes,
        pages=int.from_bytes(head[28:32], "big") if is_valid else 0,
        counter=counter,
        free_pages=int.from_bytes(head[36:40], "big"),
        is_logged=2 in head[18:20],
    )


def has_unfinished_pages(file: BinaryIO) -> bool:
    """Whether data follow the last page that the header counts: a writer put them there, and was
    ended before it could finish. Zeros there are space that was set aside.
    """
    file.seek(0)
    header = header_of(file.read(HEADER_BYTES))
    end = header.pages * header.page_bytes
    if not end or os.fstat(file.fileno()).st_size <= end:
        return False
    try:
        start = os.lseek(file.fileno(), end, os.SEEK_DATA)
    except OSError:  # nothing but a hole
        return False
    file.seek(start)
    return any(file.read(_TAIL_BYTES))


def schema_entries(file: BinaryIO, most: int) -> int:
    """How many tables, indices and views the schema has; counted up to just above `most`.

    SQLite loads all of them before it answers anything, in a time that grows with their square.
    The schema is the table whose root is page 1 (section 1.6 of the format).
    """
    file.seek(0)
    header = header_of(file.read(HEADER_BYTES))
    if header.page_bytes < 512:
        return 0
    count, waiting, seen = 0, [1], set[int]()
    while waiting and count <= most and len(seen) <= most:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        file.seek((number - 1) * header.page_bytes)
        page = file.read(header.page_bytes)
        at = HEADER_BYTES if number == 1 else 0
        cells = int.from_bytes(page[at + 3 : at + 5], "big")
        if page[at : at + 1] == _LEAF:
            count += cells
        elif page[at : at + 1] == _INTERIOR:
            pointers = [
                int.from_bytes(page[place : place + 2], "big")
                for place in range(at + 12, at + 12 + 2 * cells, 2)
            ]
            waiting += [
                int.from_bytes(page[place : place + 4], "big") for place in (*pointers, at + 8)
            ]
            waiting = [one for one in waiting if one > 0]
    return max(count, len(seen) if len(seen) > most else 0)


def super_journal(file: BinaryIO) -> tuple[str, int]:
    """The super-journal that a rollback journal names at its end, and where that record begins; no
    name and the journal's size where it names none.

    The record is the number of the page that is never written (4 bytes), the name, its length, the
    sum of its bytes (4 bytes each) and the journal's magic.
    """
    size = file.seek(0, os.SEEK_END)
    if size < 20:
        return "", size
    file.seek(size - 16)
    end = file.read(16)
    length = int.from_bytes(end[:4], "big")
    if end[8:] != JOURNAL_MAGIC or not 0 < length <= min(_SUPER_NAME_BYTES, size - 20):
        return "", size
    file.seek(size - 16 - length)
    name = file.read(length)
    # SQLite sums the bytes as signed ones
    total = sum(byte - 256 if byte > 127 else byte for byte in name) & 0xFFFFFFFF
    if total != int.from_bytes(end[4:8], "big"):
        return "", size
    return os.fsdecode(name), size - 20 - length
