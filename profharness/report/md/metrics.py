"""The figures of a run or trace as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.records import Summary
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.tables.critical import critical_tables
from profharness.report.tables.figures import figures_table
from profharness.report.tables.memory import holders as memory
from profharness.report.tables.memory.copies import copies_table
from profharness.report.tables.scan import scan_table
from profharness.report.text.findings import all_findings, finding_line
from profharness.report.text.labels import is_command, point_names_by_id
from profharness.report.text.limits import full_verdict
from profharness.report.text.measured.lacking import lacking_lines
from profharness.report.text.measured.vendors import as_read

_PATH_ROWS = 10


def metrics_markdown(summary: Summary, *, keys: bool = False) -> str:
    """The verdict, the points of a scan, the figures of the whole window, what is missing (all of
    it by its names in JSON with `keys`), and the findings.
    """
    return "\n".join(_parts(as_read(summary), keys=keys))


def _parts(summary: Summary, *, keys: bool) -> Iterator[str]:
    yield heading(summary.source).removesuffix("\n")
    verdict = full_verdict(summary.verdict, summary.verdict_needs)
    if verdict:
        yield f"{escaped(verdict)}\n"
    points = points_markdown(summary)
    if points:
        yield points
    figures = figures_table("Figures", summary.metrics)
    if figures is not None:
        yield markdown(figures)
    copied = copies_table(summary.copies_by)
    if copied is not None:
        yield markdown(copied)
    held = memory.page_notes(summary.memory)
    if held:
        yield "".join(f"- **{escaped(name)}** {escaped(said)}\n" for name, said in held)
    for table in memory.page_tables(summary.memory):
        yield heading(table.title)
        yield markdown(table)
    for table in critical_tables(summary.critical_path, _PATH_ROWS):
        yield heading(table.title)
        yield markdown(table)
    lacking = list(lacking_lines(summary, keys=keys))
    if lacking:
        yield "".join(_item(line) for line in lacking)
    named = point_names_by_id(summary)
    findings = all_findings(summary)
    if findings:
        yield "".join(
            f"- **{item.severity}** {escaped(finding_line(named, item))}\n" for item in findings
        )


def points_markdown(summary: Summary) -> str:
    """The table of a scan's points, numbers with their uncertainty; empty where there are none."""
    table = None if is_command(summary) else scan_table(summary)
    return "" if table is None else markdown(table)


def _item(line: str) -> str:
    """An entry of a list; what a line of text indents becomes an entry below."""
    inner = line.lstrip()
    return f"{'  ' if inner != line else ''}- {escaped(inner)}\n"
