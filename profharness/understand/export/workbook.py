"""Sheets as one workbook that spreadsheets open (XLSX). Needs openpyxl (extra `export`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profharness.errors import Unavailable
from profharness.rundir.outputs import whole_file
from profharness.understand.export.folders import cells, records

if TYPE_CHECKING:
    from profharness.understand.export.sheets import Sheet

MOST_ROWS = 1_048_575
"""Of a sheet below its head line: the format ends there."""
_EXACT = 1 << 53
_LONGEST = 32_000
"""Characters of a cell; the format ends at 32,767."""


def write_workbook(sheets: Sequence[Sheet], path: Path) -> list[str]:
    """Write the workbook; a sentence for each sheet whose rows did not all fit.

    No cell is a formula. Whole numbers from 2^53 on, which a spreadsheet would round, make their
    column one of texts. Raises Unavailable without openpyxl.
    """
    book = require_openpyxl().Workbook(write_only=True)
    cut = []
    for sheet in sheets:
        _fill(book.create_sheet(sheet.name), sheet)
        if sheet.rows > MOST_ROWS:
            cut.append(
                f"{sheet.name}: {sheet.rows - MOST_ROWS:,} of {sheet.rows:,} rows were left out, "
                f"since a sheet ends at {MOST_ROWS:,}; csv and parquet hold all"
            )
    with whole_file(path) as place:
        book.save(place)
    return cut


def require_openpyxl() -> Any:
    """openpyxl, before a large file is read for it. Raises Unavailable where it is missing."""
    try:
        import openpyxl
    except ImportError as error:
        raise Unavailable(
            f"spreadsheets need openpyxl ({error})", "pip install 'profharness[export]'"
        ) from error
    return openpyxl


def _fill(page: Any, sheet: Sheet) -> None:
    from openpyxl.cell import WriteOnlyCell

    page.freeze_panes = "A2"
    as_text = _beyond_exact(sheet)
    left = MOST_ROWS
    for number, part in enumerate(sheet.parts()):
        if number == 0:
            page.append([str(name) for name in part.columns])
        for row in records(cells(part.head(left), longest=_LONGEST)):
            page.append(
                [
                    _cell(WriteOnlyCell(page), value, as_text=name in as_text)
                    for name, value in row.items()
                ]
            )
        left -= min(left, len(part))
        if not left:
            break


def _cell(cell: Any, value: object, *, as_text: bool) -> Any:
    """The value in its cell; a text is never looked at for a formula."""
    if value is None:
        return None
    if isinstance(value, str) or as_text:
        cell.value = str(value)
        cell.data_type = "s"
    else:
        cell.value = value
    return cell


def _beyond_exact(sheet: Sheet) -> frozenset[str]:
    """The columns of whole numbers that hold one which a float cannot."""
    return frozenset(
        str(name)
        for part in sheet.parts()
        for name, column in part.items()
        if column.dtype.kind in "iu" and bool((column.abs() >= _EXACT).any())
    )
