"""Which points of a scan the page marks with a star, and why."""

from __future__ import annotations

from dataclasses import replace

from profharness.analysis.records import Summary
from profharness.report.table import Cell, Table
from profharness.report.tables.scan import scan_table
from profharness.report.text.scan_sentences import points_of_each, recommended_among


def starred_table(summary: Summary) -> Table | None:
    """The table of the points as the terminal shows it, with stars; for a command with points too,
    None without points.
    """
    table = scan_table(summary)
    if table is None:
        return None
    rows, marked = list(table.rows), _marked_rows(summary)
    for index, why in marked.items():
        level, *other_cells = rows[index]
        star = Cell(f"★ {level.text}", provenance=f"{why}; {level.provenance}")
        rows[index] = (star, *other_cells)
    return replace(table, rows=tuple(rows), marked=frozenset(marked))


def star_text(summary: Summary) -> str:
    """What a star says: the recommended level, or every level that may be the best where the
    intervals overlap.
    """
    if any(series.overlaps_best for series in summary.series):
        return (
            "★ marks the recommended level and every other one whose interval overlaps that of "
            "the highest throughput: among them "
            "no level is proven best."
        )
    if summary.axes is not None:
        return ""
    return "★ marks the recommended level."


def _marked_rows(summary: Summary) -> dict[int, str]:
    """Row and reason of each marked point: the recommended ones, and where intervals overlap all
    that tie with the best.
    """
    why: dict[str, str] = {}
    measured = points_of_each(summary, summary.series)
    for series, points in zip(summary.series, measured, strict=True):
        tied = set(series.overlaps_best)
        if tied:
            sound = [
                (rate, level)
                for level, rate in zip(series.levels, series.throughput, strict=True)
                if level not in series.flagged
            ]
            tied.add(max(sound)[1])
        why |= {
            point.point: "as good as the best within the intervals"
            for point in points
            if getattr(point, series.axis) in tied
        }
        recommended = recommended_among(points, series)
        if recommended is not None:
            why[recommended.point] = "recommended" + (
                ", not proven better than the other marked ones" if tied else ""
            )
    return {
        index: why[point.point] for index, point in enumerate(summary.points) if point.point in why
    }
