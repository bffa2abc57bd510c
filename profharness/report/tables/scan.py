"""The table of a scan's points: which columns apply to this summary, and what stands in each
cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from profharness.analysis.axes.naming import value_text
from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import PointSummary, Summary
from profharness.analysis.verdict.window import NOTHING_MEASURED
from profharness.report.axes.plans import plan_cells
from profharness.report.axes.required import (
    figure_name,
    figure_value,
    meaning_of_server,
    required_names,
)
from profharness.report.axes.tables import axis_cells, mark_of
from profharness.report.axes.words import CAPTION
from profharness.report.table import Cell, Column, Table
from profharness.report.tables.point_figures import PointColumn, figure_columns
from profharness.report.text import names
from profharness.report.text.figures import figure_tip, finite
from profharness.report.text.labels import (
    AXIS_TITLES,
    Axis,
    is_table,
    item_unit,
    load_text,
    point_names,
    scan_axis,
    several_batches,
)
from profharness.report.text.limits import NO_VERDICT, short_verdict, withheld_text
from profharness.report.text.rates import MEANING, throughput_text

VERDICT = "verdict"
OF_TABLE = "±: 95 % interval of the mean, from the standard error in the file"
_PLACES = 4
_MOST_FIGURES = 4
_OF_SCRIPT = "a figure of the script, mean over the executions"
_BRACKETS = re.compile(r" \([^()]*\)")


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
    required = {_short_title(shown) for shown in columns if _filled(shown, points)}
    columns.extend(
        column
        for column in figure_columns(summary)
        if _short_title(column) not in required and _filled(column, points)
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


def _filled(shown: PointColumn, points: Iterable[PointSummary]) -> bool:
    return any(shown.cell(point).text for point in points)


def _short_title(shown: PointColumn) -> str:
    """The one title of `latency p99` and `p99`."""
    return shown.column.title.removeprefix("latency ")


def _unrepeated(cell: Cell, above: str) -> Cell:
    label, colon, _ = cell.text.partition(": ")
    return (
        Cell(label, provenance=cell.text, emphasis=cell.emphasis)
        if colon and cell.text == above
        else cell
    )


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
    """The figures that a script gave in a scan of a command, or that are required of a server, and
    which points stand out.
    """
    scan = summary.axes
    if scan is None:
        return []
    served = any(point.requests is not None for point in summary.points)
    columns = [
        PointColumn(
            Column(
                figure_name(name) if served else name,
                "right",
                meaning_of_server(name) if served else _OF_SCRIPT,
                spare=9,
            ),
            partial(_script_cell, name),
        )
        for name in required_names(scan)[:_MOST_FIGURES]
    ]
    marks = PointColumn(Column(""), partial(mark_of, scan))
    return [*columns, marks] if _filled(marks, summary.points) else columns


def _script_cell(name: str, point: PointSummary) -> Cell:
    return Cell(figure_value(name, point.values[name]) if name in point.values else "")


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
