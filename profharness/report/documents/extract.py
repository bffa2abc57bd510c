"""What stands on the one page of a document: what is said, the tables, the findings."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.report.page.headline import subtitle, title
from profharness.report.page.window import window_verdict
from profharness.report.table import Table, first_rows
from profharness.report.tables.critical import critical_tables
from profharness.report.tables.hotspots import hotspot_tables
from profharness.report.tables.partition import partition_table
from profharness.report.tables.scan import scan_table
from profharness.report.text.findings import finding_lines
from profharness.report.text.measured.vendors import as_read
from profharness.report.text.sentences import sentences

POINTS, HOTSPOTS, PATH = 24, 8, 5
"""Rows of the tables: with the words above them they fill a page."""
VERDICT = "Verdict"
_HOTSPOT_KEYS = ("name", "share", "total", "calls", "mean")


@dataclass(frozen=True)
class Extract:
    """The page's parts in reading order. `of` is what the facts are of, as a label; `said` are
    labelled sentences without empty ones, `findings` lines with their severity.
    """

    title: str
    of: str
    facts: tuple[str, ...]
    said: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    findings: tuple[tuple[str, str], ...]
    source: str


def extract(summary: Summary) -> Extract:
    """The parts of the one page of a summary: the main table, and the first hotspots."""
    summary = as_read(summary)
    hotspots = hotspot_tables(summary)
    main = scan_table(summary) or partition_table(summary)
    said = sentences(summary)
    return Extract(
        title=title(summary),
        of="Trace" if summary.run is None else "Run",
        facts=tuple(cell.text for cell in subtitle(summary)),
        said=labelled(
            ("Answer", said.answer),
            ("Next", said.next),
            ("Trust", said.trust),
            (VERDICT, window_verdict(summary)),
        ),
        tables=(
            *([first_rows(main, POINTS)] if main is not None else []),
            *([_narrow(first_rows(hotspots[0], HOTSPOTS))] if hotspots else []),
            *critical_tables(summary.critical_path, PATH),
        ),
        findings=finding_lines(summary),
        source=summary.source,
    )


def labelled(*said: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The sentences that say something, with their labels."""
    return tuple((label, text) for label, text in said if text)


def _narrow(table: Table) -> Table:
    """The columns of hotspots that a page is wide enough for."""
    kept = [at for at, column in enumerate(table.columns) if column.key in _HOTSPOT_KEYS]
    return Table(
        table.title,
        tuple(table.columns[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in table.rows),
        note=table.note,
        left_out=table.left_out,
    )
