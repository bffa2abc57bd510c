"""What is exported: one sheet per table of the trace and per list behind it, the points, and the
metrics.

A sheet gives its rows as pandas frames, part after part, so that a large table is never whole in
memory as a frame. Names stand in place of positions, missing is what was not recorded, and times
are int64 ns, as `Recording.trace` gives them, but of all passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from profharness.report.frame import frame_of
from profharness.trace.model import Samples
from profharness.understand.session.tables import telemetry_frame, trace_frame

if TYPE_CHECKING:
    import pandas as pd

    from profharness.report.table import Table as ReportTable
    from profharness.trace.columns.table import Table
    from profharness.trace.model import Trace
    from profharness.understand.session.recording import Recording

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ColumnNote:
    """Unit and meaning of a column; empty where its name says them."""

    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table under its name: how many rows it has, the rows, and notes on its columns."""

    name: str
    rows: int
    parts: Callable[[], Iterator[pd.DataFrame]]
    notes: dict[str, ColumnNote]


def sheets_of(recording: Recording) -> tuple[Sheet, ...]:
    """All that have rows, in the order of docs/formats.md#tables; then `columns`, which says unit
    and meaning of each column of the others.
    """
    trace = recording.trace(allow_unaligned=True).whole
    found = [
        *(_of_records(trace, name, table) for name, table in trace.tables()),
        *(
            _of_rows(name, rows)
            for name, rows in (
                ("devices", trace.devices),
                ("streams", trace.streams),
                ("sources", trace.sources),
                ("problems", trace.problems),
            )
        ),
        *_of_figures(recording),
    ]
    shown = [sheet for sheet in found if sheet.rows]
    return (*shown, _notes(shown))


def _of_records(trace: Trace, name: str, table: Table) -> Sheet:
    def parts() -> Iterator[pd.DataFrame]:
        for first in range(0, len(table), ROWS_AT_ONCE):
            rows = np.arange(first, min(first + ROWS_AT_ONCE, len(table)))
            part = table.take(rows)
            yield (
                telemetry_frame(trace, part)
                if isinstance(part, Samples)
                else trace_frame(trace, part)
            )

    notes = {
        column.name: ColumnNote(
            "" if column.metadata["unit"] in ("string", "index") else column.metadata["unit"],
            column.metadata["meaning"],
        )
        for column in fields(table)
    }
    if isinstance(table, Samples):
        notes |= {
            "host": ColumnNote(meaning="host of the sampler"),
            "unit": ColumnNote(meaning="unit of the value"),
        }
    notes["pass"] = ColumnNote(meaning="pass of the run that recorded it")
    return Sheet(name, len(table), parts, notes)


def _of_rows(name: str, rows: Sequence[Any]) -> Sheet:
    """A list of plain records; what is not plain, such as the details of a source, is its text."""

    def parts() -> Iterator[pd.DataFrame]:
        import pandas as pd

        names = [column.name for column in fields(rows[0])]
        yield pd.DataFrame({name: [_plain(getattr(row, name)) for row in rows] for name in names})

    return Sheet(name, len(rows), parts, {})


def _plain(value: object) -> object:
    if value is None or type(value) in {int, float, bool, str}:
        return value
    if isinstance(value, tuple):
        return "; ".join(" ".join(str(part) for part in item) for item in value)
    return str(getattr(value, "value", value))


def _of_figures(recording: Recording) -> tuple[Sheet, ...]:
    from profharness.report.tables.figures import figure_values
    from profharness.report.tables.results import point_values

    summary = recording.summary
    return (
        _of_report("points", point_values(summary)),
        _of_report("metrics", figure_values(summary), {"figure": "name"}),
    )


def _of_report(name: str, table: ReportTable, called: dict[str, str] | None = None) -> Sheet:
    """`called`: columns that have another name here, as `Recording.metrics` gives them."""
    names = called or {}
    notes = {
        names.get(column.key, column.key): ColumnNote(column.unit, column.meaning)
        for column in table.columns
    }
    return Sheet(
        name, len(table.rows), lambda: iter((frame_of(table).rename(columns=names),)), notes
    )


def _notes(sheets: Sequence[Sheet]) -> Sheet:
    rows = [
        (sheet.name, column, note.unit, note.meaning)
        for sheet in sheets
        for column, note in sheet.notes.items()
    ]

    def parts() -> Iterator[pd.DataFrame]:
        import pandas as pd

        yield pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])

    return Sheet("columns", len(rows), parts, {})
