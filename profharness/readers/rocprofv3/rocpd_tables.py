"""What a rocpd database holds of one process: its tables and views, asked for by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from profharness.readers.rocprofv3.rocpd_owners import Owner


class OwnerTables:
    """The rows of one process. `alone` says that the file holds no other, so that nothing has to be
    picked out: without a condition the database reads faster.

    Every method may raise one of `sqlite_file.DAMAGED`.
    """

    def __init__(self, connection: sqlite3.Connection, owner: Owner, *, alone: bool) -> None:
        self.connection = connection
        self.owner = owner
        self.alone = alone
        self._names: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table or view; none where the file does not have it."""
        if table not in self._names:
            rows = self.connection.execute(f'PRAGMA table_info("{table}")')
            self._names[table] = frozenset(row[1] for row in rows)
        return self._names[table]

    def holds(self, table: str) -> bool:
        """Whether the file has such a table or view."""
        return bool(self.columns(table))

    def select(self, view: str, selected: Sequence[str], condition: str = "") -> sqlite3.Cursor:
        """Expressions of a view for its rows of this process."""
        where, values = self._of_owner(view)
        conditions = " AND ".join(part for part in (where, condition) if part)
        return self.connection.execute(
            f"SELECT {', '.join(selected)} FROM {view}"  # noqa: S608  made of constants
            + (f" WHERE {conditions}" if conditions else ""),
            values,
        )

    def rows(self, table: str, wanted: Sequence[str]) -> list[tuple[Any, ...]]:
        """Columns of a table that describes the process, such as its agents; None stands for a
        column that the file does not have.
        """
        present = self.columns(table)
        selected = ", ".join(f'"{name}"' if name in present else "NULL" for name in wanted)
        return self.connection.execute(
            f"SELECT {selected} FROM {table} WHERE guid = ?",  # noqa: S608  made of constants
            (self.owner.guid,),
        ).fetchall()

    def count(self, table: str, condition: str = "TRUE") -> int:
        """Rows of a table that belong to this process. Up to schema 3 a row names its process, from
        4.1 on the track that does; a table without either is the process's by its GUID.
        """
        present = self.columns(table)
        guid, pid = self.owner.guid, self.owner.pid
        values: tuple[str | int, ...] = ()
        if self.alone:
            of_owner = ""
        elif "pid" in present:
            of_owner = (
                " AND guid = ? AND pid IN (SELECT id FROM rocpd_info_process WHERE guid = ? "
                "AND pid = ?)"
            )
            values = (guid, guid, pid)
        elif "track_id" in present and "pid" in self.columns("rocpd_track"):
            of_owner = (
                " AND guid = ? AND track_id IN (SELECT T.id FROM rocpd_track T "
                "JOIN rocpd_info_process P ON P.guid = T.guid AND (P.id = T.pid OR P.pid = T.pid) "
                "WHERE T.guid = ? AND P.pid = ?)"
            )
            values = (guid, guid, pid)
        else:
            of_owner, values = " AND guid = ?", (guid,)
        row = self.connection.execute(
            f"SELECT COUNT(*) FROM {table} WHERE {condition}{of_owner}",  # noqa: S608  constants
            values,
        ).fetchone()
        return int(row[0])

    def _of_owner(self, view: str) -> tuple[str, tuple[str | int, ...]]:
        if self.alone:
            return "", ()
        if "pid" in self.columns(view):
            return "guid = ? AND pid = ?", (self.owner.guid, self.owner.pid)
        return "guid = ?", (self.owner.guid,)
