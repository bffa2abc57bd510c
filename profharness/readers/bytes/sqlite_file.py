"""An SQLite file opened for reading only, plain or gzipped; a gzipped one through a temporary file
of bounded size.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.blocks import GZIP, Blocks

MAGIC = b"SQLite format 3\0"
LARGEST_BYTES = 32 << 30
# what reading a damaged file raises; names that are not UTF-8 are not handled by the module itself
DAMAGED = (sqlite3.Error, UnicodeDecodeError)


@contextmanager
def opened(
    path: Path, largest_bytes: int = LARGEST_BYTES
) -> Iterator[tuple[sqlite3.Connection, str]]:
    """A connection, and what damaged the compressed file if anything did. Nothing is written beside
    the file.

    Raises InputError when it cannot be read, and when a gzipped file holds more than
    `largest_bytes`.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}",
            "check the path and its permissions",
        ) from error
    if not compressed:
        with _connected(path) as connection:
            yield connection, ""
        return
    with tempfile.TemporaryDirectory(prefix="profharness-") as folder:
        plain = Path(folder) / "plain.db"
        damage = _inflate(path, plain, largest_bytes)
        with _connected(plain) as connection:
            yield connection, damage


def _inflate(path: Path, plain: Path, largest_bytes: int) -> str:
    blocks = Blocks(path)
    size = 0
    try:
        with plain.open("wb") as out:
            for block in blocks:
                size += len(block)
                if size > largest_bytes:
                    raise InputError(
                        f"{path} holds more than {largest_bytes >> 20} MiB",
                        "decompress it yourself and name the plain file",
                    )
                out.write(block)
    except OSError as error:
        raise InputError(
            f"{path} cannot be decompressed to {plain.parent}: {error.strerror or error}",
            "free some space, or choose another folder with TMPDIR",
        ) from error
    return blocks.damage


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Read-only. A file with a write-ahead log beside it is not complete without it, so that it is
    read in the slower, shared way.
    """
    log = path.with_name(f"{path.name}-wal")
    immutable = "" if log.is_file() and log.stat().st_size else "&immutable=1"
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro{immutable}", uri=True, isolation_level=None
        )
    except sqlite3.Error as error:
        raise InputError(
            f"{path} cannot be opened: {error}", "check that it is a whole SQLite file"
        ) from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        yield connection
    finally:
        connection.close()
