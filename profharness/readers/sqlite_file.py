"""A SQLite file opened for reading only, plain or gzipped; the packed one through a temporary file of bounded size."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.files import GZIP, Blocks

MAGIC = b"SQLite format 3\0"
MOST_BYTES = 64 << 30
_HINT = "the tool was interrupted, or the file was damaged on its way: copy or record it again"


@contextlib.contextmanager
def opened(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[sqlite3.Connection]:
    """A connection; nothing is written beside the file. Raises InputError when it is no readable database, also while
    it is used, and when a packed one grows beyond `most_bytes`.
    """
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(_unpacked(path, most_bytes))
        pending = path.with_name(path.name + "-wal").exists()
        connection = sqlite3.connect(f"{plain.resolve().as_uri()}?mode=ro{'' if pending else '&immutable=1'}", uri=True)
        stack.callback(connection.close)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            yield connection
        except sqlite3.Error as error:
            raise InputError(f"{path} is no readable database: {error}", _HINT) from error


def tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The columns of each table and view."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")) for name in names}


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def _unpacked(path: Path, most_bytes: int) -> Iterator[Path]:
    blocks = Blocks(path)
    with path.open("rb") as file:
        if file.read(len(GZIP)) != GZIP:
            yield path
            return
    with tempfile.NamedTemporaryFile(suffix=".db") as plain:
        size = 0
        for block in blocks:
            size += len(block)
            if size > most_bytes:
                raise InputError(f"{path} holds more than {most_bytes} bytes unpacked", "unpack it yourself and name the plain file")
            plain.write(block)
        if blocks.damage:
            raise InputError(f"{path} cannot be unpacked: {blocks.damage}", _HINT)
        plain.flush()
        yield Path(plain.name)
