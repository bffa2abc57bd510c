"""What a rocpd database holds of one process: its tables and views, asked for by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from profharness.readers.rocprofv3.rocpd_owners import Owner
from profharness.readers.rocprofv3.rocpd_scopes import Scope


class OwnerTables:
    """The rows of one process. `alone` says that the file holds no other, so that nothing has to be
    picked out: without a condition the database reads faster.

    Every method may raise one of `databases.guard.DAMAGED`.
    """

    def __init__(self, file: Scope, owner: Owner, *, alone: bool) -> None:
        self._scope = file
        self.owner = owner
        self.alone = alone
        self._names: dict[str, frozenset[str]] = {}

    def execute(self, statement: str, values: object = ()) -> sqlite3.Cursor:
        """Run a statement on the tables of this process's set."""
        return self._scope.execute(statement, values)

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table or view; none where the file does not have it."""
        if table not in self._names:
            rows = self.execute(f'PRAGMA table_info("{table}")')
            self._names[table] = frozenset(row[1] for row in rows)
        return self._names[table]

    def holds(self, table: str) -> bool:
        """Whether the file has such a table or view."""
        return bool(self.columns(table))

    def select(self, view: str, selected: Sequence[str], condition: str = "") -> sqlite3.Cursor:
        """Expressions of a view for its rows of this process."""
        where, values = self._of_owner(view)
        conditions = " AND ".join(part for part in (where, condition) if part)
        return self.execute(
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
        return self.execute(
            f"SELECT {selected} FROM {table} WHERE guid = ?",  # noqa: S608  made of constants
            (self.owner.guid,),
        ).fetchall()

    def column_of(self, table: str, column: str, view: str) -> str:
        """An expression for a column that a view leaves out of its table, or changes."""
        return (
            f"(SELECT D.{column} FROM {table} D "  # noqa: S608  made of constants
            f"WHERE D.id = {view}.id AND D.guid = {view}.guid)"
        )

    def any(self, table: str, column: str) -> bool:
        """Whether a column is above 0 anywhere; not where the file does not have it."""
        if column not in self.columns(table):
            return False
        found = self.execute(
            f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} > 0)"  # noqa: S608  constants
        )
        return bool(found.fetchone()[0])

    def count(self, table: str, condition: str = "TRUE") -> int:
        """Rows of a table that belong to this process."""
        return int(self.of_table(table, ["COUNT(*)"], condition).fetchone()[0])

    def of_table(
        self, table: str, selected: Sequence[str], condition: str = "TRUE"
    ) -> sqlite3.Cursor:
        """Expressions of a table for its rows of this process. Up to schema 3 a row names its
        process, from 4.1 on the track that does; a table without either is the process's by its
        GUID.
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
        return self.execute(
            f"SELECT {', '.join(selected)} FROM {table} "  # noqa: S608  made of constants
            f"WHERE {condition}{of_owner}",
            values,
        )

    def _of_owner(self, view: str) -> tuple[str, tuple[str | int, ...]]:
        if self.alone:
            return "", ()
        if "pid" in self.columns(view):
            return "guid = ? AND pid = ?", (self.owner.guid, self.owner.pid)
        return "guid = ?", (self.owner.guid,)
