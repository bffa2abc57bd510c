"""Tables as GitHub's Markdown, for tickets and papers' notes.

Numbers stand right, columns are as wide as their longest cell, and no foreign name can end its
cell, begin a line or become markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profharness.report.table import Column, Table
from profharness.rundir.shown.screen import one_line

_LONGEST = 300  # characters of a name in a cell
_NUMBERS = 24  # characters of a figure; what is longer is a sentence
_MARKUP = re.compile(r"([\\`*_\[\]<>|~$&])")
# an underscore or star inside of a word is no markup, and keys of figures are full of them
_INSIDE = re.compile(r"(?<=\w)\\_(?=\w)")
_LINKED = re.compile(r"@|#(?=\d)|:(?=//)")  # people, issues and addresses, which GitHub makes links
_NUMBER = re.compile(r"[-+<>~]?\s?\d[\d.,\u2009]*(?![\w.,/:\u2009-])")


def markdown(table: Table) -> str:
    """The rows below their titles, then the note of the table where it has one. Ends with a
    newline.
    """
    heads = [escaped(column.title) for column in table.columns]
    rows = [[escaped(cell.text) for cell in row] for row in table.rows]
    widths = [max(3, *(len(row[place]) for row in (heads, *rows))) for place in range(len(heads))]
    right = [_is_right(table, place) for place in range(len(heads))]
    rule = [
        f"{'-' * (width - 1)}{':' if last else '-'}"
        for width, last in zip(widths, right, strict=True)
    ]
    lines = [_line(cells, widths, right) for cells in (heads, rule, *rows)]
    if table.left_out:
        are = "row is" if table.left_out == 1 else "rows are"
        lines += ["", f"{table.left_out} further {are} not shown."]
    if table.note:
        lines += ["", escaped(table.note)]
    return "\n".join(lines) + "\n"


def heading(text: str, level: int = 2) -> str:
    """A heading with an empty line below it."""
    return f"{'#' * level} {escaped(text)}\n\n"


def escaped(text: str, longest: int = _LONGEST) -> str:
    """A text of at most so many characters that stands in a cell or a line as it is: its markup is
    escaped, its line ends are blanks, and what has no shape is made visible.
    """
    shown = one_line(" ".join(text.splitlines()), longest)
    plain = _INSIDE.sub("_", _MARKUP.sub(r"\\\1", shown))
    return _LINKED.sub(r"\g<0><!-- -->", plain)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if last else cell.ljust(width)
        for cell, width, last in zip(cells, widths, right, strict=True)
    )
    return f"| {' | '.join(padded)} |"


def _is_right(table: Table, place: int) -> bool:
    """Whether a column stands right: it says so, or all of its cells are numbers."""
    column: Column = table.columns[place]
    texts = [row[place].text for row in table.rows if row[place].text not in ("", "-")]
    numbers = (len(text) <= _NUMBERS and _NUMBER.match(text) for text in texts)
    return column.align == "right" or (bool(texts) and all(numbers))
