"""Tables as text: aligned lines for pipes and short lists, and tables that a terminal wraps,
colours or frames.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from profharness.report.table import Cell, Column, Table
from profharness.rundir.shown.screen import one_line, visible

if TYPE_CHECKING:
    from rich import table as rich_tables

STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan", "": "dim", "muted": "dim"}
_GAP = 3
_WRAPPED = 24  # characters that a wrapped column needs at least
_NARROWEST = 40  # characters that `listing` leaves a wrapped column


def listing(
    table: Table, *, indent: int = 0, heads: bool = False, width: int | None = None
) -> Iterator[str]:
    """The rows as aligned lines, below the titles where `heads`. Nothing follows the last text of a
    line.

    A last column that wraps is broken at `width` characters per line, between words only, and at
    its own line ends.
    """
    table = _on_a_screen(table)
    head = tuple(Cell(column.title) for column in table.columns)
    rows = (head, *table.rows) if heads else table.rows
    widths = [
        max((len(row[index].text) for row in rows), default=0)
        if column.width is None
        else column.width
        for index, column in enumerate(table.columns)
    ]
    start = " " * indent
    for row in rows:
        texts = [cell.text for cell in row]
        if width is None or not table.columns[-1].wraps:
            yield start + _line(table.columns, texts, widths)
        else:
            before = _line(table.columns, [*texts[:-1], "|"], widths).removesuffix("|")
            yield from _wrapped(start + before, texts[-1], width)


def _on_a_screen(table: Table) -> Table:
    """The table with foreign names in one line each, and what has no shape escaped, so that widths
    are those of what is shown. A column that wraps keeps its line ends.
    """
    shown = tuple(
        tuple(
            Cell(text, emphasis=cell.emphasis)
            if (text := visible(cell.text) if column.wraps else one_line(cell.text)) != cell.text
            else cell
            for column, cell in zip(table.columns, row, strict=True)
        )
        for row in table.rows
    )
    return replace(table, rows=shown)


def _line(columns: Sequence[Column], texts: list[str], widths: Sequence[int]) -> str:
    """The texts in their columns; empty ones at the end take no room, and the last one is not
    filled up.
    """
    while texts and not texts[-1]:
        texts = texts[:-1]
    last = len(texts) - 1
    line = ""
    for index, (column, text, width) in enumerate(zip(columns, texts, widths, strict=False)):
        if index:
            line += column.gap
        filled = text if index == last else text.ljust(width)
        line += text.rjust(width) if column.align == "right" else filled
    return line


def _wrapped(before: str, text: str, width: int) -> Iterator[str]:
    room = max(width - len(before), _NARROWEST)
    parts = [
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False)
    ] or [""]
    for index, part in enumerate(parts):
        yield f"{before if index == 0 else ' ' * len(before)}{part}".rstrip()


def fitting(table: Table, width: int) -> list[int]:
    """The places of the columns that fit into `width` characters; those with the smallest `spare`
    go first.
    """
    table = _on_a_screen(table)
    needed = [
        min(
            max(len(column.title), *(len(row[index].text) for row in table.rows)),
            _WRAPPED if column.wraps else width,
        )
        for index, column in enumerate(table.columns)
    ]
    shown = list(range(len(table.columns)))
    spare = [index for index in shown if table.columns[index].spare]
    for index in sorted(spare, key=lambda index: table.columns[index].spare):
        if sum(needed[place] + _GAP for place in shown) <= width + _GAP:
            break
        shown.remove(index)
    return shown


def terminal_table(
    table: Table, shown: Sequence[int], overflow: Literal["fold", "ellipsis"] = "fold"
) -> rich_tables.Table:
    """The columns at the places `shown`, for rich to print. `overflow` is what happens where even
    these do not fit.
    """
    from rich.table import Table as RichTable
    from rich.text import Text

    table = _on_a_screen(table)
    made = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for index in shown:
        column = table.columns[index]
        made.add_column(
            column.title, justify=column.align, no_wrap=not column.wraps, overflow=overflow
        )
    for row in table.rows:
        cells = [row[index] for index in shown]
        made.add_row(
            *(
                Text(cell.text, style=STYLES["error"] if cell.emphasis == "error" else "")
                for cell in cells
            )
        )
    return made


def framed_table(table: Table) -> rich_tables.Table:
    """All columns in a frame below the title, for rich to print."""
    from rich.table import Table as RichTable

    table = _on_a_screen(table)
    made = RichTable(title=table.title, expand=False)
    for column in table.columns:
        made.add_column(column.title, justify=column.align)
    for row in table.rows:
        made.add_row(*(cell.text for cell in row))
    return made
