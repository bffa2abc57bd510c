"""An SQLite file for code that looks through all of its values, as `scrub` does; readers of traces
use `profharness.rundir.databases.opening`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profharness.rundir.databases.guard import DAMAGED, SEARCHING
from profharness.rundir.databases.header import MAGIC
from profharness.rundir.databases.opening import LARGEST_BYTES
from profharness.rundir.databases.opening import opened as _opened

__all__ = ["DAMAGED", "LARGEST_BYTES", "MAGIC", "opened"]


@contextmanager
def opened(
    path: Path, largest_bytes: int = LARGEST_BYTES
) -> Iterator[tuple[sqlite3.Connection, str]]:
    """A connection, and what damaged the compressed file if anything did. Raises InputError as
    `databases.opening.opened` does, which also says what was recovered.
    """
    with _opened(path, largest_bytes, SEARCHING) as database:
        yield database.connection, database.damage
