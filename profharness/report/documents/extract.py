"""What stands on the one page of a document: what is said, the tables, the findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from profharness.analysis.records import Summary
from profharness.report.page.headline import subtitle, title
from profharness.report.page.tidy import filled
from profharness.report.page.window import window_verdict
from profharness.report.table import Table, first_rows
from profharness.report.tables.critical import critical_tables
from profharness.report.tables.hotspots import hotspot_tables
from profharness.report.tables.memory import holders as memory
from profharness.report.tables.memory.copies import copies_table
from profharness.report.tables.partition import partition_table
from profharness.report.tables.scan import scan_table
from profharness.report.text.findings import finding_lines
from profharness.report.text.measured.vendors import as_read
from profharness.report.text.sentences import sentences

POINTS, HOTSPOTS, FURTHER, PATH = 24, 8, 8, 5
"""Rows of the tables: with the words above them the first two fill a page; `FURTHER` of each other
one, `PATH` of the critical path.
"""
_OF_MEMORY = 3
"""Tables of memory: over batch sizes, and the owners of the highest peak."""
VERDICT = "Verdict"
_HOTSPOT_KEYS = ("name", "share", "total", "calls", "mean")


@dataclass(frozen=True)
class Extract:
    """The page's parts in reading order. `of` is what the facts are of, as a label; `said` are
    labelled sentences without empty ones, `findings` lines with their severity, and `further`
    tables stand behind them where a page has room.
    """

    title: str
    of: str
    facts: tuple[str, ...]
    said: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    findings: tuple[tuple[str, str], ...]
    source: str
    further: tuple[Table, ...] = ()


def extract(summary: Summary) -> Extract:
    """The parts of the one page of a summary: the main table, the first hotspots, copies, and
    memory.
    """
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
            ("Memory", memory.brief(summary.memory)),
        ),
        tables=(
            *([first_rows(main, POINTS)] if main is not None else []),
            *([_narrow(first_rows(hotspots[0], HOTSPOTS))] if hotspots else []),
            *critical_tables(summary.critical_path, PATH),
        ),
        findings=finding_lines(summary),
        source=summary.source,
        further=tuple(_further(summary)),
    )


def _further(summary: Summary) -> Iterator[Table]:
    """Copies and memory, where there are any."""
    for table in (
        copies_table(summary.copies_by),
        *memory.page_tables(summary.memory)[:_OF_MEMORY],
    ):
        short = filled(table)
        if short is not None:
            yield first_rows(_not_wide(short), FURTHER)


def _not_wide(table: Table) -> Table:
    return _of_columns(table, [at for at, one in enumerate(table.columns) if not one.wide])


def labelled(*said: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The sentences that say something, with their labels."""
    return tuple((label, text) for label, text in said if text)


def _narrow(table: Table) -> Table:
    """The columns of hotspots that a page is wide enough for."""
    kept = [at for at, column in enumerate(table.columns) if column.key in _HOTSPOT_KEYS]
    return _of_columns(table, kept)


def _of_columns(table: Table, kept: Sequence[int]) -> Table:
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
    )
