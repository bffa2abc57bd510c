"""Two runs beside each other, as `profharness compare` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.compare.gate import Breach
from profharness.analysis.compare.records import (
    Comparison,
    Difference,
    HotspotComparison,
    PointComparison,
)
from profharness.report.tables.comparison import (
    changed_rows,
    delta_table,
    hotspot_change_table,
    reason_table,
)
from profharness.report.text.changes import change_reason, change_text
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import lines_text, one_line

_NAMES_AT = 60  # where the names of hotspots begin, below which their reasons stand
SHOWN = ("throughput", "latency", "latency_p50", "latency_p99")
SHOWN_OF_RUN = ("steps_per_second", "throughput")


def comparison_text(comparison: Comparison, breaches: Sequence[Breach]) -> str:
    """Both runs, every point with its changes and their reasons, hotspots, and broken limits."""
    return lines_text(comparison_lines(comparison, breaches))


def comparison_lines(comparison: Comparison, breaches: Sequence[Breach]) -> Iterator[str]:
    """The lines of `comparison_text`."""
    yield from _heading(comparison)
    for point in comparison.points:
        yield from _point_lines(point)
    shown = [
        delta
        for delta in comparison.run
        if delta.name in SHOWN_OF_RUN
        or (delta.significant is not False and abs(delta.change) >= 0.05)
    ]
    if shown and not comparison.points:
        yield "run"
        yield from listing(delta_table(shown), indent=2)
    yield from listing(reason_table(comparison.reasons), indent=2)
    for table in comparison.hotspots:
        yield from _hotspot_lines(table)
    for title, names in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("failed in B", comparison.failed),
    ):
        if names:
            yield f"{title}: {', '.join(names)}"
    if not comparison.points and not comparison.run:
        yield "nothing in common to compare"
    for breach in breaches:
        place = f" at {breach.point}" if breach.point else ""
        yield f"fails {breach.condition}{place}: {change_text(breach.delta)}"


def _heading(comparison: Comparison) -> Iterator[str]:
    """Both runs, with what speaks against them, and what was different from the start."""
    for letter, run, errors in (
        ("A", comparison.run_a, comparison.errors_a),
        ("B", comparison.run_b, comparison.errors_b),
    ):
        yield f"{letter}  {one_line(run)}" + (
            f"   (not sound by itself: {', '.join(errors)})" if errors else ""
        )
    for title, differences in (
        ("asked differently", comparison.asked),
        ("ran on", comparison.ran_on),
    ):
        if differences:
            yield f"{title}: {'; '.join(_difference(difference) for difference in differences)}"


def _difference(difference: Difference) -> str:
    before, after = (
        "not set" if value is None or not value else value for value in (difference.a, difference.b)
    )
    return f"{difference.name} {before} -> {after}"


def _point_lines(point: PointComparison) -> Iterator[str]:
    deltas = [delta for delta in point.deltas if delta.name in SHOWN]
    if deltas:
        yield point.point
        yield from listing(delta_table(deltas), indent=2)
        yield from listing(reason_table(point.reasons), indent=2)


def _hotspot_lines(table: HotspotComparison) -> Iterator[str]:
    rows = changed_rows(table)
    if not rows:
        yield f"hotspots by {table.by}: the same"
        return
    yield f"hotspots by {table.by}, largest change of total time first (mean per call)"
    head, *lines = listing(hotspot_change_table(table), indent=2, heads=True)
    yield head
    for row, line in zip(rows, lines, strict=True):
        yield line
        why = change_reason(row)
        if why:
            yield f"{'':>{_NAMES_AT}}{why}"
