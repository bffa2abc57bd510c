"""A report in Markdown (CommonMark with the tables of GitHub), for tickets and wikis. Foreign names
are text: no mark, link or tag in them has an effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from profharness import __version__
from profharness.analysis.records import Summary
from profharness.report.documents.extract import Extract, extract
from profharness.report.table import Table
from profharness.rundir.shown.screen import one_line

_SPECIAL = re.compile(r"([\\`*\[\]<>|~&#$!])|(?<!\w)_|_(?!\w)")
_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])")
_LONGEST = 2_000  # characters of one name or sentence


def markdown(summary: Summary) -> str:
    """The page as Markdown; it ends with a newline."""
    return "\n\n".join(_blocks(extract(summary))) + "\n"


def _blocks(page: Extract) -> Iterator[str]:
    yield f"# {escaped(page.title)}"
    if page.facts:
        yield " · ".join(map(escaped, page.facts))
    for label, text in (
        ("Answer", page.said.answer),
        ("Next", page.said.next),
        ("Trust", page.said.trust),
        ("Verdict", page.verdict),
    ):
        if text:
            yield f"**{label}** {escaped(text)}"
    for table in (page.main, page.hotspots):
        if table is not None:
            yield f"## {escaped(table.title)}"
            yield table_text(table)
            if table.left_out:
                yield f"{table.left_out} further rows are not shown."
    if page.findings:
        yield "## Findings"
        yield "\n".join(f"- {_finding(severity, line)}" for severity, line in page.findings)
    yield f"Made by profharness {__version__} from {escaped(page.source)}."


def _finding(severity: str, line: str) -> str:
    return f"**{severity}** {escaped(line)}" if severity else escaped(line)


def table_text(table: Table) -> str:
    """A table, with its titles and the side on which its columns are aligned."""
    heads = [escaped(column.title) or " " for column in table.columns]
    rules = ["---:" if column.align == "right" else "---" for column in table.columns]
    rows = [[escaped(cell.text) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))


def escaped(text: str) -> str:
    """A text as it reads, in one line: what Markdown would take for a mark is escaped."""
    line = _SPECIAL.sub(r"\\\g<0>", one_line(text, _LONGEST))
    return _LIST.sub(lambda found: f"{found[1] or ''}\\{found[2] or found[3]}", line)
