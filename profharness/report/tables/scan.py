"""The table of a scan's points: which columns apply to this summary, and what stands in each
cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from profharness.analysis.axes.naming import value_text
from profharness.analysis.axes.records import AxesScan
from profharness.analysis.records import PointSummary, Summary
from profharness.analysis.verdict.window import NOTHING_MEASURED
from profharness.report.axes.plans import plan_cells
from profharness.report.axes.tables import axis_cells, mark_of, required_names
from profharness.report.axes.words import CAPTION
from profharness.report.table import Cell, Column, Table
from profharness.report.text import names
from profharness.report.text.figures import (
    cores_text,
    figure_tip,
    finite,
    fraction_text,
    quantity_text,
)
from profharness.report.text.labels import (
    AXIS_TITLES,
    Axis,
    allowed_cores,
    is_table,
    item_unit,
    load_text,
    point_names,
    scan_axis,
    several_batches,
)
from profharness.report.text.limits import NO_VERDICT, short_verdict, withheld_text
from profharness.report.text.rates import MEANING, throughput_ends, throughput_text
from profharness.units import format_number, one_of

VERDICT = "verdict"
OF_TABLE = "±: 95 % interval of the mean, from the standard error in the file"
_PLACES = 4
_MOST_FIGURES = 4
_BRACKETS = re.compile(r" \([^()]*\)")


@dataclass(frozen=True)
class PointColumn:
    """A column and the function that fills it for one point."""

    column: Column
    cell: Callable[[PointSummary], Cell]


def scan_table(summary: Summary) -> Table | None:
    """One row per point over all passes; None without points.

    The columns are those that hold a figure for at least one point, in the order in which they are
    read. A verdict that repeats the row above keeps its label only.
    """
    if not summary.points:
        return None
    columns = _columns(summary)
    return Table(
        "The points of the scan", tuple(shown.column for shown in columns), _rows(summary, columns)
    )


def _columns(summary: Summary) -> tuple[PointColumn, ...]:
    points = summary.points
    columns = _setting_columns(summary)
    if several_batches(points):
        columns.append(PointColumn(Column("batch", "right"), partial(_own_cell, "batch_size")))
    if len({point.backend for point in points}) > 1:
        columns.append(PointColumn(Column("backend"), lambda point: Cell(point.backend)))
    if any(point.throughput is not None for point in points):
        columns.append(
            PointColumn(
                Column(item_unit(summary), "right", f"mean over the trials, bare pass; {MEANING}"),
                _throughput,
            )
        )
    columns += _figures_of_script(summary)
    columns.extend(
        column
        for column in _figure_columns(summary)
        if any(column.cell(point).text for point in points)
    )
    if any(_judged(point) or point.state != "ok" for point in points):
        columns.append(
            PointColumn(
                Column(
                    VERDICT,
                    meaning="the largest disjoint share of the window and its evidence",
                    wraps=True,
                ),
                _verdict,
            )
        )
    return tuple(columns)


def caption(summary: Summary) -> str:
    """What ± in the table means; empty where no point has an interval."""
    if not any(throughput_ends(point) for point in summary.points):
        return ""
    if summary.axes is not None:
        return CAPTION
    return OF_TABLE if is_table(summary) else MEANING


def withheld(summary: Summary, most: int | None = None) -> tuple[str, ...]:
    """Why points have no verdict, a line per reason, for below the table; with the points where
    there are several reasons.

    Points whose reasons differ in bracketed figures only share a line, without these. After `most`
    lines the rest is counted.
    """
    reasons: dict[str, list[tuple[str, str]]] = {}
    for name, point in zip(point_names(summary, summary.points), summary.points, strict=True):
        reason = _reason(point)
        if reason:
            reasons.setdefault(_BRACKETS.sub("", reason), []).append((name, reason))
    lines = []
    for plain, places_and_reasons in reasons.items():
        places = (
            f" at {_places([name for name, _ in places_and_reasons])}" if len(reasons) > 1 else ""
        )
        alike = len({reason for _, reason in places_and_reasons}) == 1
        lines.append(f"{NO_VERDICT}{places}: {places_and_reasons[0][1] if alike else plain}")
    if most is None or len(lines) <= most:
        return tuple(lines)
    rest = sum(len(places_and_reasons) for places_and_reasons in list(reasons.values())[most:])
    return (
        *lines[:most],
        f"{NO_VERDICT} at {rest} more {'point' if rest == 1 else 'points'}: the report says why",
    )


def _judged(point: PointSummary) -> bool:
    """Whether a verdict on the point was made, or withheld for a reason of its own."""
    return point.verdict is not None or bool(_reason(point))


def _reason(point: PointSummary) -> str:
    """What a verdict on the point needs; empty where it has one, and where nothing could give one
    because nothing was recorded.
    """
    if point.state != "ok" or point.verdict is not None or point.verdict_needs == NOTHING_MEASURED:
        return ""
    return f"needs {point.verdict_needs.partition(';')[0]}" if point.verdict_needs else ""


def _places(points: list[str]) -> str:
    rest = len(points) - _PLACES
    return ", ".join(points[:_PLACES]) + (f" and {rest} more" if rest > 0 else "")


def _rows(summary: Summary, columns: tuple[PointColumn, ...]) -> tuple[tuple[Cell, ...], ...]:
    rows: list[tuple[Cell, ...]] = []
    above = ""
    for point in summary.points:
        cells = [column.cell(point) for column in columns]
        if columns[-1].column.title == VERDICT and point.state == "ok":
            cells[-1], above = _unrepeated(cells[-1], above), cells[-1].text
        rows.append(tuple(cells))
    return tuple(rows)


def _unrepeated(cell: Cell, above: str) -> Cell:
    label, colon, _ = cell.text.partition(": ")
    return (
        Cell(label, provenance=cell.text, emphasis=cell.emphasis)
        if colon and cell.text == above
        else cell
    )


def _figure_columns(summary: Summary) -> tuple[PointColumn, ...]:
    item = one_of(item_unit(summary).removesuffix("/s")) or "item"
    return (
        _latency_column(summary),
        *(_served_columns() if any(point.mode for point in summary.points) else ()),
        _metric_column(Column("GPU %", "right", spare=6), _whole, names.GPU_PERCENT),
        _metric_column(
            Column("fill", "right", spare=7),
            _fraction,
            names.FILL_BARE,
            names.FILL,
            names.WAVE_FILL,
        ),
        _metric_column(
            Column("power", "right", spare=2, wide=True), _power, names.POWER_SATURATION
        ),
        _metric_column(Column("cores", "right", spare=4), _cores(summary), names.CORES_USED),
        _metric_column(Column("supported", "right", spare=1), _fraction, names.SUPPORTED),
        _metric_column(Column(f"J/{item}", "right", spare=1), _energy, names.ENERGY_PER_ITEM),
    )


def _served_columns() -> tuple[PointColumn, ...]:
    """What matters of a level of load beside its median latency."""
    return (
        _metric_column(Column("p99", "right", spare=5), _latency, names.LATENCY_P99),
        PointColumn(
            Column("failed", "right", "requests without an answer in time"),
            lambda point: (
                Cell(f"{point.failed} of {point.requests + point.failed}", emphasis="error")
                if point.failed and point.requests is not None
                else Cell("")
            ),
        ),
        _metric_column(Column("batches", "right", spare=3), _count, names.SERVER_BATCH),
    )


def _count(value: float, _unit: str) -> str:
    return f"{value:.3g}"


def _setting_columns(summary: Summary) -> list[PointColumn]:
    """What tells the points apart: a level, or the values of several axes."""
    if plans := plan_cells(summary.points):
        return [PointColumn(column, partial(_own_cell, key)) for column, key in plans]
    if summary.axes is None:
        return [_level_column(scan_axis(summary.points))]
    return [PointColumn(column, partial(_value_cell, name)) for column, name in axis_cells(summary)]


def _own_cell(key: str, point: PointSummary) -> Cell:
    value = getattr(point, key)
    return Cell("" if value is None else str(value), provenance=f"point {point.point}")


def _value_cell(name: str, point: PointSummary) -> Cell:
    value = point.parameters.get(name)
    return Cell("" if value is None else value_text(value), provenance=f"point {point.point}")


def _figures_of_script(summary: Summary) -> list[PointColumn]:
    """The figures that a script gave in a scan of a command, and which points stand out."""
    scan = summary.axes
    if scan is None:
        return []
    columns = [
        PointColumn(
            Column(name, "right", "a figure of the script, mean over the executions", spare=9),
            partial(_script_cell, name),
        )
        for name in required_names(scan)[:_MOST_FIGURES]
    ]
    if any(mark_of(scan, point).text for point in summary.points if point.state == "ok"):
        columns.append(PointColumn(Column(""), partial(_mark_cell, scan)))
    return columns


def _script_cell(name: str, point: PointSummary) -> Cell:
    return Cell(f"{point.values[name]:.4g}" if name in point.values else "")


def _mark_cell(scan: AxesScan, point: PointSummary) -> Cell:
    return mark_of(scan, point) if point.state == "ok" else Cell("")


def _level_column(axis: Axis | None) -> PointColumn:
    if axis is None:
        return PointColumn(Column("point"), lambda point: Cell(point.point))

    def cell(point: PointSummary) -> Cell:
        return Cell(load_text(point, axis) or point.point, provenance=f"point {point.point}")

    return PointColumn(Column(AXIS_TITLES[axis], "right"), cell)


def _throughput(point: PointSummary) -> Cell:
    value = finite(point.throughput)
    if value is None:
        return Cell("")
    figure = point.metrics.get(names.THROUGHPUT)
    counted = (
        f"{point.trials} trials after {point.warmup_trials} of warm-up" if point.trials else ""
    )
    tip = "; ".join(part for part in (figure_tip(figure) if figure else "", counted) if part)
    return Cell(throughput_text(point), provenance=tip)


def _metric_column(column: Column, show: Callable[[float, str], str], *choices: str) -> PointColumn:
    """The first of `choices` that a point has, below a column that gets the meaning of the first
    choice.
    """

    def cell(point: PointSummary) -> Cell:
        for name in choices:
            figure = point.metrics.get(name)
            value = finite(figure.value) if figure is not None else None
            if figure is not None and value is not None:
                return Cell(
                    show(value, figure.unit), provenance=figure_tip(figure, names.meaning_of(name))
                )
        return Cell("")

    return PointColumn(replace(column, meaning=names.meaning_of(choices[0])), cell)


def _latency_column(summary: Summary) -> PointColumn:
    """The median where points have one; a point without says `mean` before its figure, and the
    title says it where none has.
    """
    median = _metric_column(Column("latency p50", "right", spare=8), _latency, names.LATENCY_P50)
    mean = _metric_column(Column("latency mean", "right", spare=8), _latency, names.LATENCY_MEAN)

    def mean_cell(point: PointSummary) -> Cell:
        cell, value = mean.cell(point), finite(point.latency_ms)
        if cell.text or value is None:
            return cell
        return Cell(
            quantity_text(value, "ms"), provenance="mean of the trials; p50 needs more trials"
        )

    if not any(median.cell(point).text for point in summary.points):
        return replace(mean, cell=mean_cell)

    def cell(point: PointSummary) -> Cell:
        median_cell, instead = median.cell(point), mean_cell(point)
        return (
            median_cell
            if median_cell.text or not instead.text
            else Cell(f"mean {instead.text}", provenance=instead.provenance)
        )

    return replace(median, cell=cell)


def _latency(value: float, unit: str) -> str:
    return quantity_text(value, unit or "ms")


def _whole(value: float, unit: str) -> str:
    return f"{value if unit in {'%', 'percent'} or value > 1 else 100 * value:.0f}"


def _fraction(value: float, unit: str) -> str:
    return fraction_text(value / 100 if unit in {"%", "percent"} else value)


def _power(value: float, _unit: str) -> str:
    """A share of the way from idle to the limit; the sensor resolves no more than hundredths, above
    or below nothing.
    """
    return f"{value + 0.0 if abs(value) >= 0.005 else 0.0:.2f}"


def _energy(value: float, _unit: str) -> str:
    digits = 3 if value >= 0.1 else 2
    return (
        format_number(value)
        if value >= 1000
        else f"{float(f'{value:.{digits}g}'):.10f}".rstrip("0").rstrip(".")
    )


def _cores(summary: Summary) -> Callable[[float, str], str]:
    allowed = allowed_cores(summary)

    def show(value: float, _unit: str) -> str:
        return (
            cores_text(value)
            if allowed is None
            else f"{cores_text(value)} of {format_number(allowed)}"
        )

    return show


def _verdict(point: PointSummary) -> Cell:
    if point.state != "ok":
        return Cell(
            f"{point.state}: {_first_line(point.error)}" if point.error else point.state,
            provenance=point.error,
            emphasis="error",
        )
    if point.verdict is None:
        reason = _reason(point)
        return Cell(
            NO_VERDICT if reason else "",
            provenance=withheld_text(point.verdict_needs) if reason else "",
            emphasis="muted" if reason else "",
        )
    text = short_verdict(point.verdict, point.partition)
    return Cell(text, provenance=point.verdict.text)


def _first_line(error: str) -> str:
    return next((line.strip() for line in error.splitlines() if line.strip()), "")
