"""What stands on the one page of a document: the answer, the main table, the first hotspots."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.report.page.headline import subtitle, title
from profharness.report.page.window import window_verdict
from profharness.report.table import Table, first_rows
from profharness.report.tables.hotspots import hotspot_tables
from profharness.report.tables.partition import partition_table
from profharness.report.tables.scan import scan_table
from profharness.report.text.findings import finding_lines
from profharness.report.text.sentences import Sentences, sentences

POINTS, HOTSPOTS = 24, 8
"""Rows of the two tables: with the words above them they fill a page."""
_HOTSPOT_KEYS = ("name", "share", "total", "calls", "mean")


@dataclass(frozen=True)
class Extract:
    """The page's parts in reading order; a table is None, a text empty, where there is nothing.
    `of` is what the facts are of, as a label.
    """

    title: str
    of: str
    facts: tuple[str, ...]
    said: Sentences
    verdict: str
    main: Table | None
    hotspots: Table | None
    findings: tuple[tuple[str, str], ...]
    source: str


def extract(summary: Summary) -> Extract:
    """The parts of the one page of a summary."""
    tables = hotspot_tables(summary)
    main = scan_table(summary) or partition_table(summary)
    return Extract(
        title=title(summary),
        of="Trace" if summary.run is None else "Run",
        facts=tuple(cell.text for cell in subtitle(summary)),
        said=sentences(summary),
        verdict=window_verdict(summary),
        main=None if main is None else first_rows(main, POINTS),
        hotspots=_narrow(first_rows(tables[0], HOTSPOTS)) if tables else None,
        findings=finding_lines(summary),
        source=summary.source,
    )


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
