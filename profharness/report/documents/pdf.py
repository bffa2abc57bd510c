"""A report as one page of PDF (A4), drawn by matplotlib (extra `plots`): the words, the figures,
and of the tables what fits.
"""

from __future__ import annotations

import io
import textwrap
from typing import Any

from profharness import __version__
from profharness.errors import Unavailable
from profharness.report.documents.extract import Extract
from profharness.report.documents.figures import LEFT, RIGHT, Draw
from profharness.report.table import Table
from profharness.report.text.folding import cut_middle
from profharness.rundir.shown.screen import one_line

_PAGE = (8.27, 11.69)  # inches of A4
_TOP = 0.955
_LINE = 0.0155  # of the page's height, for 8.5 pt
_ROWS, _FURTHER = 16, 8
"""Rows of the first table, and of each other one."""
_NAME = 48  # characters of a cell
_CHARACTERS = 104  # of 8.5 pt in a line
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dfe5ea",
    "axes.axisbelow": True,
}


def pdf(page: Extract, draw: Draw) -> bytes:
    """The page; the same extract gives the same bytes. Raises Unavailable without matplotlib."""
    mpl = require_matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_PAGE)
        below = _words(figure, page)
        below = draw(figure, below)
        for number, table in enumerate(page.tables):
            below = _table(figure, table, _FURTHER if number else _ROWS, below)
        _say(figure, LEFT, 0.03, f"profharness {__version__}, from {page.source}", color="#55626f")
        out = io.BytesIO()
        about = {"Title": one_line(page.title), "Creator": "profharness", "CreationDate": None}
        figure.savefig(out, format="pdf", metadata=about)
    return out.getvalue()


def require_matplotlib() -> Any:
    """Matplotlib. Raises Unavailable where it is not installed."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise Unavailable(
            f"a page in PDF needs matplotlib ({error})", "pip install 'profharness[plots]'"
        ) from error
    return mpl


def _say(figure: Any, x: float, y: float, text: str, **look: Any) -> None:
    """A line of text whose dollar signs begin no formula."""
    figure.text(x, y, one_line(text), va="top", parse_math=False, **look)


def _words(figure: Any, page: Extract) -> float:
    """Title, facts and the sentences; where they end."""
    _say(figure, LEFT, _TOP, cut_middle(page.title, 60), fontsize=15, fontweight="bold")
    _say(figure, LEFT, _TOP - 0.027, " · ".join(page.facts), color="#55626f")
    at = _TOP - (0.055 if page.facts else 0.035)
    for label, text in page.said:
        lines = textwrap.wrap(text, _CHARACTERS - 12)[:6]
        if lines:
            _say(figure, LEFT, at, label, color="#0b7375", fontweight="bold")
        for line in lines:
            _say(figure, LEFT + 0.085, at, line)
            at -= _LINE
        at -= _LINE / 3 if lines else 0
    return at


def _table(figure: Any, table: Table, most: int, below: float) -> float:
    """The first rows and columns that fit; where the table ends."""
    rows = table.rows[: min(most, int((below - 0.07) / _LINE) - 2)]
    if len(rows) < 1:
        return below
    _say(figure, LEFT, below, table.title, fontweight="bold")
    cells = [
        [column.title for column in table.columns],
        *([one.text for one in row] for row in rows),
    ]
    widths = [
        _wide(max(len(cut_middle(one, _NAME)) for one in column))
        for column in zip(*cells, strict=True)
    ]
    shown = [at for at in range(len(widths)) if sum(widths[: at + 1]) <= _CHARACTERS + 8]
    at = below - 1.2 * _LINE
    for number, row in enumerate(cells):
        x = LEFT
        for place in shown:
            right = table.columns[place].align == "right"
            wide = widths[place] / (_CHARACTERS + 8) * (RIGHT - LEFT)
            look = {"ha": "right" if right else "left", "color": "#17212b" if number else "#55626f"}
            _say(
                figure,
                x + (wide - 0.015 if right else 0),
                at,
                cut_middle(row[place], _NAME),
                **look,
            )
            x += wide
        at -= _LINE
    left = len(table.rows) - len(rows) + table.left_out
    if left:
        _say(figure, LEFT, at, f"{left} further rows", color="#55626f")
        at -= _LINE
    return at - _LINE / 2


def _wide(letters: int) -> int:
    """The width of a column in letters of mean width, with a gap; names have wide letters."""
    return letters + 2 + letters // 6
