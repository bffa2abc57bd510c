"""Tables of an SQLite file whose schema varies: which there are, their columns, and queries with
names from the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from profharness.rundir.blocks import read_head
from profharness.rundir.databases import opening as databases
from profharness.trace.model import Problem


@dataclass(frozen=True)
class Database:
    """An open file. `columns` are by table or view; `damage` says in words why the file ended
    early, if it did; `problems` are all that there is to say of it.
    """

    connection: sqlite3.Connection
    columns: Mapping[str, tuple[str, ...]]
    damage: str
    problems: tuple[Problem, ...] = ()

    def size(self, table: str) -> int:
        """How many rows a table has; 0 where it is not there."""
        if table not in self.columns:
            return 0
        query = f"SELECT count(*) FROM {quoted(table)}"  # noqa: S608  the name is quoted
        return int(self.connection.execute(query).fetchone()[0])

    def rows(self, table: str, columns: Sequence[str]) -> sqlite3.Cursor:
        """These columns of a table, in the order in which its rows were written."""
        chosen = ", ".join(map(quoted, columns))
        query = f"SELECT {chosen} FROM {quoted(table)} ORDER BY rowid"  # noqa: S608  quoted
        return self.connection.execute(query)


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The file, for reading. Raises InputError when it is no readable database, also while it is
    read.
    """
    read_head(path, 1)  # says what is wrong with a path that cannot be read
    with databases.opened(path) as file:
        names = [
            row[0]
            for row in file.connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            )
        ]
        columns = {
            name: tuple(
                row[1] for row in file.connection.execute(f"PRAGMA table_info({quoted(name)})")
            )
            for name in names
        }
        yield Database(file.connection, columns, file.damage, tuple(problems_of(file, path)))


def problems_of(file: databases.Opened, path: Path) -> Iterator[Problem]:
    """What there is to say of a database before any of it is read."""
    if file.damage:
        yield Problem("error", str(path), 1, f"the file is cut or damaged: {file.damage}")
    if file.recovered:
        yield Problem("warning", str(path), 1, file.recovered)
    if file.doubt:
        yield Problem("info", str(path), 1, file.doubt)


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'
