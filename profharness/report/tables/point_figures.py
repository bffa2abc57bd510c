"""The columns of a scan's points that hold a measured figure: which of a point's figures each
shows, and in which form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from profharness.analysis.records import PointSummary, Summary
from profharness.report.table import Cell, Column
from profharness.report.text import names
from profharness.report.text.figures import (
    cores_text,
    figure_tip,
    finite,
    fraction_text,
    is_known,
    quantity_text,
    range_text,
)
from profharness.report.text.labels import allowed_cores, item_unit
from profharness.units import format_number, one_of


@dataclass(frozen=True)
class PointColumn:
    """A column and the function that fills it for one point."""

    column: Column
    cell: Callable[[PointSummary], Cell]


def figure_columns(summary: Summary) -> tuple[PointColumn, ...]:
    """All of them, in the order in which they are read; the table leaves out those without a
    figure.
    """
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


def _metric_column(column: Column, show: Callable[[float, str], str], *choices: str) -> PointColumn:
    """The first of `choices` that a point has, below a column that gets the meaning of the first
    choice.
    """

    def cell(point: PointSummary) -> Cell:
        for name in choices:
            figure = point.metrics.get(name)
            if figure is None or not is_known(figure):
                continue
            value = finite(figure.value)
            return Cell(
                range_text(figure) if value is None else show(value, figure.unit),
                provenance=figure_tip(figure, names.meaning_of(name)),
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
