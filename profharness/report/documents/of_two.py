"""What stands on the one page of a comparison: what changed in a sentence, both sides with their
verdicts, the points, all changes, where the time went, and the hotspots that changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from profharness.analysis.compare.records import Comparison
from profharness.analysis.records import Summary
from profharness.report.compared.tables import work_tables
from profharness.report.documents.extract import POINTS, Extract, labelled
from profharness.report.page.window import window_verdict
from profharness.report.table import Table, first_rows
from profharness.report.tables.both import both_points_table, parts_table
from profharness.report.tables.comparison import change_table, hotspot_change_table
from profharness.report.text.comparison import (
    answer,
    not_compared,
    other_differences,
    side,
    sides_title,
    why,
)
from profharness.report.text.findings import finding_lines
from profharness.report.text.measured.vendors import as_read

CHANGES = 48
"""Rows of the table of all changes: of a dozen points each with four figures."""


def extract_two(comparison: Comparison, a: Summary, b: Summary) -> Extract:
    """The parts of the one page of two summaries and their comparison."""
    return Extract(
        title=sides_title(comparison.run_a, comparison.run_b),
        of="Comparison",
        facts=(),
        said=labelled(
            ("Answer", answer(comparison)),
            ("Why", why(comparison)),
            ("A", _judged(side(comparison.run_a, comparison.errors_a), a)),
            ("B", _judged(side(comparison.run_b, comparison.errors_b), b)),
            ("Differs", "; ".join((*other_differences(comparison), *not_compared(comparison)))),
        ),
        tables=tuple(_tables(comparison, a, b)),
        findings=tuple(_findings(a, b)),
        source=f"{comparison.run_a} and {comparison.run_b}",
    )


def _judged(name: str, summary: Summary) -> str:
    """A side with the sentence of its verdict."""
    verdict = window_verdict(as_read(summary))
    return f"{name}: {verdict}" if verdict else name


def _tables(comparison: Comparison, a: Summary, b: Summary) -> Iterator[Table]:
    points = both_points_table(comparison, a, b)
    if points is not None:
        yield first_rows(points, POINTS)
    for work in work_tables(comparison):
        yield replace(work, title=work.title.capitalize())
    changes = change_table(comparison)
    if changes is not None:
        yield first_rows(changes, CHANGES)
    parts = parts_table(a.partition, b.partition)
    if parts is not None:
        yield parts
    for table in comparison.hotspots:
        changed = hotspot_change_table(table)
        if changed.rows:
            yield replace(changed, title=f"Hotspots by {table.by}, largest change first")


def _findings(a: Summary, b: Summary) -> Iterator[tuple[str, str]]:
    """The findings of both, each with whose it is; one that both have stands once."""
    of_a, of_b = finding_lines(a), finding_lines(b)
    for severity, line in of_a:
        yield severity, f"{'A and B' if (severity, line) in of_b else 'A'}: {line}"
    for severity, line in of_b:
        if (severity, line) not in of_a:
            yield severity, f"B: {line}"
