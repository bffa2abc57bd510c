"""Whose records a rocpd database holds: its processes, and the environment that it keeps of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.rocprofv3.rocpd_scopes import Scope
from profharness.rundir.databases.guard import DAMAGED
from profharness.trace.columns.table import NULL
from profharness.trace.places import MOST_NAMES, Named, command_name, named


@dataclass(frozen=True)
class Owner:
    """A process of the database."""

    guid: str
    pid: int
    host: str


def owners(file: Scope) -> list[Owner]:
    """The processes, in the order of the file."""
    rows = file.execute("SELECT guid, pid, hostname FROM processes").fetchall()
    return [
        Owner(str(guid), pid if isinstance(pid, int) else NULL, text_of(host))
        for guid, pid, host in dict.fromkeys(rows)
    ]


def names_of(file: Scope, owner: Owner) -> tuple[Named, ...]:
    """What the file calls a process, by its command, and the threads of it that have a name."""
    recorded: list[tuple[int, int, str]] = []
    commands = "SELECT command FROM processes WHERE guid = ? AND pid = ? LIMIT 1"
    threads = "SELECT tid, name FROM threads WHERE guid = ? AND pid = ? AND name <> '' LIMIT ?"
    try:
        for (command,) in file.execute(commands, (owner.guid, owner.pid)):
            recorded.append((owner.pid, NULL, command_name(text_of(command).split())))
        for tid, name in file.execute(threads, (owner.guid, owner.pid, MOST_NAMES)):
            if isinstance(tid, int):
                recorded.append((owner.pid, tid, text_of(name)))
    except DAMAGED:
        pass  # older files have neither, and what names nothing costs no record
    return named(recorded)


def environment_size(file: Scope) -> int:
    """How many environment variables the file holds."""
    try:
        rows = file.execute("SELECT environment FROM rocpd_info_process").fetchall()
        return sum(
            len(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
            for (text,) in rows
            if isinstance(text, str)
        )
    except (*DAMAGED, *NOT_JSON):
        return 0


def text_of(value: Any) -> str:
    """A column may hold a value of any type, whatever was declared."""
    return "" if value is None else str(value)
