"""A scan of a command as `profharness saturation` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.axes.naming import setting_text, value_text
from profharness.analysis.axes.records import AxesScan, AxisCurve, Prediction
from profharness.report.axes.caps import cap_table, cost_table
from profharness.report.axes.tables import (
    curve_table,
    expected_table,
    knee_text,
    left_out_table,
    worth_table,
)
from profharness.report.axes.words import answer, series_heading, trust
from profharness.report.table import Column, Table, row_of
from profharness.report.text.figures import brief_text, estimate_text
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import lines_text

_MOST = 12


def axes_text(scan: AxesScan, predictions: Sequence[Prediction] = ()) -> str:
    """The answer, what the axes are worth, each curve with its values, and predictions."""
    lines = [answer(scan), f"{trust(scan)}.", ""]
    worth = worth_table(scan)
    if worth is not None:
        lines += [worth.title, *listing(worth, indent=2, heads=True), ""]
    for table in (cost_table(scan), cap_table(scan)):
        if table is not None:
            lines += [table.title, *listing(table, indent=2, heads=True), ""]
    for curve in scan.curves[:_MOST]:
        lines += [series_heading(curve), *listing(_curve(scan, curve), indent=2), ""]
    if len(scan.curves) > _MOST:
        table = curve_table(scan)
        assert table is not None
        lines += [table.title, *listing(table, indent=2, heads=True), ""]
    for table in (expected_table(scan, _MOST), left_out_table(scan)):
        if table is not None:
            lines += [table.title, *listing(table, indent=2, heads=True), ""]
    lines += [
        f"predicted at {setting_text(one.parameters)}: {estimate_text(one.throughput)} {scan.unit}"
        for one in predictions
    ]
    return lines_text(lines).rstrip("\n") + "\n"


def _curve(scan: AxesScan, curve: AxisCurve) -> Table:
    return Table(
        series_heading(curve),
        (Column(width=11), Column()),
        tuple(row_of(*row) for row in _rows(scan, curve)),
    )


def _rows(scan: AxesScan, curve: AxisCurve) -> Iterator[tuple[str, str]]:
    yield (
        "measured",
        ", ".join(
            f"{value_text(level)}: {brief_text(rate)}"
            for level, rate in zip(curve.levels, curve.throughput, strict=True)
        )
        + f" {scan.unit}",
    )
    if curve.recommended is not None:
        yield (
            "recommended",
            (
                f"{curve.recommended.at:g}: {brief_text(curve.recommended.throughput)} "
                f"{scan.unit}, within 5 % of the best {brief_text(max(curve.throughput))}"
            ),
        )
    if text := knee_text(curve):
        yield "knee", text
    if curve.limiter_text:
        yield "limiter", f"at {curve.limiter_at:g}: {curve.limiter_text}"
    for item in curve.findings:
        yield item.severity, f"{item.id}: {item.message}"
