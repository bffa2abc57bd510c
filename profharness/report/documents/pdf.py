"""A report as one page of PDF (A4), drawn by matplotlib (extra `plots`): the words, the figures,
and of the tables what fits.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

from profharness import __version__
from profharness.errors import Unavailable
from profharness.report.documents.columns import GAP, Block, blocks
from profharness.report.documents.extract import Extract
from profharness.report.documents.figures import LEFT, RIGHT, Draw
from profharness.report.documents.wrapping import unbroken
from profharness.report.table import Table
from profharness.report.text.folding import cut_middle
from profharness.rundir.shown.screen import one_line

_PAGE = (8.27, 11.69)  # inches of A4
_TOP = 0.955
_LINE = 0.0155  # of the page's height, for 8.5 pt
_ROWS, _FURTHER = 16, 8
"""Rows of the first table, and of each other one."""
_POINTS = 72 * _PAGE[0]
_ROOM = (RIGHT - LEFT) * _POINTS
_INDENT = 50.0  # points of what stands behind a label
_BOTTOM = 0.055
_INK, _SOFT = "#17212b", "#55626f"
_SEVERITY = {"error": "#b3261e", "warning": "#8a5a00", "info": "#1f5fa8"}
_SIZE = 8.5
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": _SIZE,
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
        below = _findings(figure, page.findings, below)
        for table in page.further:
            below = _table(figure, table, _FURTHER, below)
        source = f"profharness {__version__}, from {page.source}"
        letters = len(source)
        while width_of(cut_middle(source, letters)) > _ROOM:
            letters -= 1
        _say(figure, LEFT, 0.03, cut_middle(source, letters), color=_SOFT)
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


@cache
def width_of(text: str) -> float:
    """The width of a text of the page's size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=_SIZE)
    wide, _, _ = text_to_path.get_text_width_height_descent(one_line(text), font, ismath=False)
    return float(wide)


def wrapped(text: str, room: float) -> list[str]:
    """The lines of a text in so many points, each number with its unit."""
    lines = [""]
    for word in unbroken(text.replace("`", "")).split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line for line in lines if line]


def _words(figure: Any, page: Extract) -> float:
    """Title, facts and the sentences; where they end."""
    _say(figure, LEFT, _TOP, cut_middle(page.title, 60), fontsize=15, fontweight="bold")
    _say(figure, LEFT, _TOP - 0.027, " · ".join(page.facts), color=_SOFT)
    at = _TOP - (0.055 if page.facts else 0.035)
    for label, text in page.said:
        lines = wrapped(text, _ROOM - 0.085 * _POINTS)[:6]
        if lines:
            _say(figure, LEFT, at, label, color="#0b7375", fontweight="bold")
        for line in lines:
            _say(figure, LEFT + 0.085, at, line)
            at -= _LINE
        at -= _LINE / 3 if lines else 0
    return at


def _table(figure: Any, table: Table, most: int, below: float) -> float:
    """The first rows that fit; where the table ends."""
    lines = max(0, int((below - _BOTTOM) / _LINE) - 2)
    title, found = blocks(table, min(most, lines), _ROOM, width_of)
    if len(found) > 1:
        title, found = blocks(table, min(most, lines // len(found) - 1), _ROOM, width_of)
    rows = len(found[0][0].texts) - 1 if found else 0
    if rows < 1:
        return below
    _say(figure, LEFT, below, title, fontweight="bold")
    at = below - 1.2 * _LINE
    for place, block in enumerate(found):
        at = _block(figure, block, at - (0.4 * _LINE if place else 0))
    left = len(table.rows) - rows + table.left_out
    if left:
        _say(figure, LEFT, at, f"{left} further row{'s' if left > 1 else ''}", color=_SOFT)
        at -= _LINE
    return at - _LINE / 2


def _block(figure: Any, block: Block, at: float) -> float:
    x = LEFT
    for column in block:
        wide = column.width / _POINTS
        for number, text in enumerate(column.texts):
            look = {"ha": "right" if column.right else "left", "color": _INK if number else _SOFT}
            _say(figure, x + (wide if column.right else 0), at - number * _LINE, text, **look)
        x += wide + GAP / _POINTS
    return at - len(block[0].texts) * _LINE


def _findings(figure: Any, findings: Sequence[tuple[str, str]], below: float) -> float:
    """The first findings that have room; where they end."""
    lines = [
        (severity, [one_line(line) for line in wrapped(text, _ROOM - _INDENT)])
        for severity, text in findings
    ]
    if not lines or below - (2.2 + len(lines[0][1])) * _LINE < _BOTTOM:
        return below
    _say(figure, LEFT, below, "Findings", fontweight="bold")
    at = below - 1.2 * _LINE
    for place, (severity, said) in enumerate(lines):
        last = place == len(lines) - 1
        if at - (len(said) + (0 if last else 1)) * _LINE < _BOTTOM:
            _say(figure, LEFT, at, f"and {len(lines) - place} more", color=_SOFT)
            return _BOTTOM
        _say(figure, LEFT, at, severity, color=_SEVERITY.get(severity, _INK), fontweight="bold")
        for line in said:
            _say(figure, LEFT + _INDENT / _POINTS, at, line)
            at -= _LINE
    return at - _LINE / 2
