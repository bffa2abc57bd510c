"""Tables with both sides of a comparison: its points, and the parts of the time."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.compare.records import Comparison, Delta, PointComparison
from profharness.analysis.records import Partition, PointSummary, Summary
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.tables.comparison import over_text
from profharness.report.text.figures import quantity_text
from profharness.report.text.limits import short_verdict
from profharness.report.text.names import title_of
from profharness.units import format_ns, format_share

_OF_POINTS = (("throughput",), ("latency_p50", "latency"))
"""What a row of a point shows: of each group the first figure that any point has."""


def both_points_table(comparison: Comparison, a: Summary, b: Summary) -> Table | None:
    """A row for each point that both measured: throughput and latency in both with B over A, and
    what holds the point back in each. None without points in common.
    """
    if not comparison.points:
        return None
    has = {delta.name for point in comparison.points for delta in point.deltas}
    shown = [name for group in _OF_POINTS for name in [n for n in group if n in has][:1]]
    limits = [_limits(one, comparison.points) for one in (a, b)]
    judged = [number for number, texts in enumerate(limits) if any(texts)]
    columns = [Column("point")]
    for name in shown:
        columns += [Column(f"{title_of(name)}, A", "right"), Column("B", "right")]
        columns.append(Column("B over A", "right"))
    columns += [Column(f"verdict, {'AB'[number]}") for number in judged]
    rows = (
        row_of(
            point.point,
            *(cell for name in shown for cell in _cells(point.deltas, name)),
            *(limits[number][place] for number in judged),
        )
        for place, point in enumerate(comparison.points)
    )
    return Table("Points", tuple(columns), tuple(rows))


def _cells(deltas: Sequence[Delta], name: str) -> tuple[str, str, str]:
    found = next((delta for delta in deltas if delta.name == name), None)
    if found is None:
        return "", "", ""
    before, after = (quantity_text(value, found.unit) for value in (found.a, found.b))
    return before, after, over_text(found)


def _limits(summary: Summary, points: Sequence[PointComparison]) -> list[str]:
    """The short verdict of each of these points in one of the summaries."""
    of_name: dict[str, PointSummary] = {one.point: one for one in summary.points}
    found = [of_name[point.point] for point in points]
    return [short_verdict(one.verdict, one.partition) for one in found]


def parts_table(a: Partition | None, b: Partition | None) -> Table | None:
    """The parts of both windows side by side; None where one has no timeline."""
    if a is None or b is None or not a.window_ns or not b.window_ns:
        return None
    rows = []
    for part in PARTS:
        times = part_ns(a, part), part_ns(b, part)
        if any(times):
            shares = times[0] / a.window_ns, times[1] / b.window_ns
            rows.append(
                (
                    Cell(part.label),
                    *(Cell(format_share(share), value=share) for share in shares),
                    *(Cell(format_ns(ns), value=ns) for ns in times),
                )
            )
    titles = ("share, A", "share, B", "time, A", "time, B")
    columns = (Column("part"), *(Column(title, "right") for title in titles))
    return Table("Parts of both windows", columns, tuple(rows))
