"""A report in Markdown (CommonMark with the tables of GitHub), for tickets and wikis. Foreign names
are text: no mark, link or tag in them has an effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness import __version__
from profharness.report.documents.extract import Extract
from profharness.report.md.tables import escaped, heading
from profharness.report.md.tables import markdown as table_markdown

_SENTENCES = 2_000  # characters of a paragraph


def markdown(page: Extract) -> str:
    """The page as Markdown; it ends with a newline."""
    return "\n\n".join(block.rstrip("\n") for block in _blocks(page)) + "\n"


def opening(page: Extract) -> Iterator[str]:
    """Title and facts."""
    yield heading(page.title, 1)
    if page.facts:
        yield f"**{page.of}** {' · '.join(map(escaped, page.facts))}"


def paragraph(label: str, text: str) -> str:
    """A labelled paragraph."""
    return f"**{label}** {escaped(text, _SENTENCES)}"


def _blocks(page: Extract) -> Iterator[str]:
    yield from opening(page)
    yield from (paragraph(label, text) for label, text in page.said)
    for table in (*page.tables, *page.further):
        yield heading(table.title)
        yield table_markdown(table)
    if page.findings:
        yield heading("Findings")
        yield "\n".join(f"- {_finding(severity, line)}" for severity, line in page.findings)
    yield f"Made by profharness {__version__} from {escaped(page.source)}."


def _finding(severity: str, line: str) -> str:
    text = escaped(line, _SENTENCES)
    return f"**{severity}** {text}" if severity else text
