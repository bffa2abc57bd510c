"""Which tables of a rocpd database its views show, and how the others are read.

The tables of each process end in its GUID, and views without one stand for them. rocprofv3 makes
the views once: where a second process writes into the same file (`-o NAME`), they go on to show the
first one's tables alone. Merged files have views over the tables of all.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TABLE = re.compile(r"(rocpd_info_process)_(\w+)")
_CREATED = re.compile(r"""CREATE\s+VIEW\s+["`\[]?(\w+)["`\]]?\s+AS\b""", re.IGNORECASE)
_COMMENT = re.compile(r"""('[^']*'|"[^"]*")|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Scope:
    """A database as one set of its tables shows it: in statements, the names of views stand for
    what they would show of these tables.

    `tables` are the names of the tables by the views that stand for them, `views` the texts of the
    other views. Without both the file's own views answer.
    """

    connection: sqlite3.Connection
    tables: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    def execute(self, statement: str, values: object = ()) -> sqlite3.Cursor:
        """As `sqlite3.Connection.execute`, for statements that select, and PRAGMA."""
        given: Any = values
        text = self._renamed(statement)
        words = set(re.findall(r"\w+", text))
        used = {name: body for name, body in self.views.items() if name in words}
        if not used or text.startswith("PRAGMA"):
            return self.connection.execute(text, given)
        bodies = ", ".join(f'"{name}" AS ({body})' for name, body in self._needed(used).items())
        return self.connection.execute(f"WITH {bodies} {text}", given)

    def _renamed(self, text: str) -> str:
        return re.sub(r"\w+", lambda word: self.tables.get(word[0], word[0]), text)

    def _needed(self, used: dict[str, str]) -> dict[str, str]:
        """These views, and those that they are made of, over the tables of this set."""
        found: dict[str, str] = {}
        waiting = list(used)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self._renamed(self.views[name])
                waiting += set(re.findall(r"\w+", found[name])) & set(self.views)
        return found


def scopes(connection: sqlite3.Connection) -> list[Scope]:
    """The file as its own views show it, then one scope for each set of tables that no view shows.
    Raises one of `databases.guard.DAMAGED`.
    """
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    tables = [str(name) for kind, name, _ in found if kind == "table"]
    bodies = {
        str(name): plain[created.end() :]
        for kind, name, text in found
        if kind == "view"
        and (created := _CREATED.match(plain := _COMMENT.sub(_uncommented, str(text))))
    }
    shown = set(re.findall(r"\w+", bodies.get("rocpd_info_process", "")))
    hidden = [
        match[2] for name in tables if (match := _TABLE.fullmatch(name)) and name not in shown
    ]
    views = {name: body for name, body in bodies.items() if not name.startswith("rocpd_")}
    every = frozenset(tables)
    return [
        Scope(connection),
        *(
            Scope(
                connection,
                {name: f"{name}_{suffix}" for name in bodies if f"{name}_{suffix}" in every},
                views,
            )
            for suffix in hidden
            if shown
        ),
    ]


def _uncommented(found: re.Match[str]) -> str:
    """A text or a quoted name as it is; a blank for a comment."""
    return found[1] or " "
