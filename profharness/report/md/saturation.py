"""The curves of a scan as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.table import Column, Table, row_of
from profharness.report.text.figures import number_text
from profharness.report.text.labels import AXIS_TITLES, series_name
from profharness.report.text.saturation import series_table
from profharness.rundir.latency_limit import LatencyLimit


def saturation_markdown(
    curves: tuple[Series, ...],
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: tuple[PointSummary, ...] = (),
) -> str:
    """Every series: its levels as a table, then what the curve says, as a list."""
    of_each = zip(curves, members(points, curves, blank_is_any=True), strict=True)
    return "\n".join(part for curve, own in of_each for part in _series(curve, jobs, limit, own))


def _series(
    curve: Series, jobs: int | None, limit: LatencyLimit | None, points: Sequence[PointSummary]
) -> Iterator[str]:
    yield heading(series_name(curve) or "All rows", 3) + markdown(levels_table(curve))
    yield "".join(
        f"- {f'**{escaped(label)}** ' if label else ''}{escaped(text)}\n"
        for label, text in (
            (row[0].text, row[1].text) for row in series_table(curve, jobs, limit, points).rows
        )
    )


def levels_table(curve: Series) -> Table:
    """Each level with its throughput, and the share of the best one that it reaches."""
    best = max(curve.throughput, default=0.0)
    errors = curve.throughput_sem or (None,) * len(curve.levels)
    columns = (
        Column(AXIS_TITLES[curve.axis], "right"),
        Column(f"{curve.unit} ± standard error", "right"),
        Column("of the best", "right"),
    )
    return Table(
        series_name(curve),
        columns,
        tuple(
            row_of(
                f"{level:g}",
                number_text(rate, error),
                f"{100 * rate / best:.0f} %" if best else "",
            )
            for level, rate, error in zip(curve.levels, curve.throughput, errors, strict=True)
        ),
    )
