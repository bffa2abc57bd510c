"""The tasks of a job array as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.report.table import Column, Table, row_of
from profharness.rundir.jobs.arrays import TaskRow, lacking
from profharness.rundir.shown.screen import encoded

SCHEMA = 1
_COLUMNS = (
    Column("task", "right"),
    Column("state"),
    Column("tries", "right"),
    Column("value"),
    Column("run"),
)


class TaskList(msgspec.Struct, frozen=True, kw_only=True):
    """The document of `report FOLDER --json`: every task, the numbers of those that are not done
    and do not run, and what `run --json` prints of all points.
    """

    schema: int = SCHEMA
    folder: str = ""
    missing: tuple[int, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    summary: msgspec.Raw = msgspec.Raw(b"null")


def tasks_table(rows: Sequence[TaskRow]) -> Table:
    """A row for each task."""
    return Table(
        "Tasks",
        _COLUMNS,
        tuple(
            row_of(
                str(row.task.number),
                row.state,
                str(row.tries),
                row.task.value,
                "" if row.run is None else row.run.path,
            )
            for row in rows
        ),
    )


def tasks_json(folder: str, rows: tuple[TaskRow, ...], summary: bytes) -> str:
    """The tasks as one JSON object, with `run --json` of their points."""
    found = TaskList(folder=folder, missing=lacking(rows), tasks=rows, summary=msgspec.Raw(summary))
    return msgspec.json.format(encoded(found), indent=2).decode() + "\n"
