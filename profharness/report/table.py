"""The one model of a table, which every form of the report shares.

A builder in `report.tables` maps records to a `Table` and so decides once what its rows, columns
and words are. Five renderers print it and decide nothing about what it says: `report.text.listing`
for terminals and pipes, `report.csv` and `as_objects` for programs, `report.frame` for pandas, and
the page's template for HTML.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Align = Literal["left", "right"]
Emphasis = Literal["", "error", "warning", "info", "muted"]


@dataclass(frozen=True)
class Cell:
    """What stands in one cell.

    `text` is for people, `value` is what programs get (None where there is none, a number in the
    column's unit). `provenance` says what the text means and where it comes from; the page shows it
    beside the pointer. `bar` is the length of a bar behind the text, in per cent of the longest.
    `full` is the whole of a shortened text, and `below` a smaller line under it.
    """

    text: str = ""
    provenance: str = ""
    emphasis: Emphasis = ""
    value: object = None
    bar: float | None = None
    full: str = ""
    below: str = ""


@dataclass(frozen=True)
class Column:
    """How one column is named and laid out.

    `title` heads it for people and `key`, with `unit` where that is no part of it, for programs.
    Plain text gives it `width` characters (None: those of its widest cell) and puts `gap` before
    it. `wraps` says that long cells are broken into lines. Where a terminal is too narrow, the
    columns with the smallest `spare` above 0 are left out first. `wide` leaves it out of the page
    on a narrow screen.
    """

    title: str = ""
    align: Align = "left"
    meaning: str = ""
    key: str = ""
    unit: str = ""
    width: int | None = None
    gap: str = "  "
    wraps: bool = False
    spare: int = 0
    wide: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells below columns.

    `title` says what it holds and `note` what holds of all of it. `marked` rows stand out.
    `left_out` counts the rows that the records have beyond these.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    marked: frozenset[int] = frozenset()
    left_out: int = 0

    @property
    def compact(self) -> bool:
        """Whether all cells are short, so that the page need not stretch the table over its
        width.
        """
        return not any(len(cell.text) > 40 for row in self.rows for cell in row)


def first_rows(table: Table, most: int) -> Table:
    """The table with `most` rows at most; how many it leaves out is counted."""
    more = len(table.rows) - most
    if more <= 0:
        return table
    return replace(table, rows=table.rows[:most], left_out=table.left_out + more)


def as_objects(table: Table) -> list[dict[str, object]]:
    """Each row as an object of its values by the columns' keys, for JSON; a cell without a value is
    left out.
    """
    return [
        {
            column.key: cell.value
            for column, cell in zip(table.columns, row, strict=True)
            if cell.value is not None
        }
        for row in table.rows
    ]


def row_of(*texts: str) -> tuple[Cell, ...]:
    """A row that holds plain text only."""
    return tuple(Cell(text) for text in texts)
