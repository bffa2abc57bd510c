"""Tables of a scan over axes: its axes' worth, its curves, and what is expected."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.axes.naming import setting_text, value_text
from profharness.analysis.axes.records import (
    AxesScan,
    AxisCurve,
    Effect,
    Front,
    FrontPoint,
    Parameters,
)
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.axes.caps import cap_table, cost_table
from profharness.report.axes.words import axis_name, factor_text, figure_title, levels_text
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import (
    brief_text,
    estimate_text,
    figure_text,
    interval_text,
    number_text,
)
from profharness.report.text.limits import label_of

WORTH = "What the axes are worth"
CURVES = "Curves along the axes"
FRONT = "What none beats in everything"
_MOST_FRONT = 12
_MOST_PAIRS = 10
_MOST_CURVES = 60
EXPECTED = "Expected of settings that were not measured"
LEFT_OUT = "Each point as the others predict it"
_MOST_EXPECTED = 40
_FEW_EXPECTED = 5


def axes_tables(scan: AxesScan | None) -> tuple[Table, ...]:
    """The front of a server, what the axes are worth, what power caps cost and save, every curve
    along the axes, what is expected of settings that were not measured, and how far such a
    prediction is to be trusted.
    """
    made = (
        front_table(scan),
        worth_table(scan),
        cost_table(scan),
        cap_table(scan),
        curve_table(scan),
        expected_table(scan),
        left_out_table(scan),
    )
    return tuple(table for table in made if table is not None)


def terminal_tables(scan: AxesScan | None) -> tuple[Table, ...]:
    """Of these what fits below the points: of curves those through the best point."""
    made = (
        front_table(scan),
        worth_table(scan),
        cost_table(scan),
        curve_table(scan, through_best=True),
        expected_table(scan, most=_FEW_EXPECTED),
    )
    return tuple(table for table in made if table is not None)


def front_table(scan: AxesScan | None) -> Table | None:
    """The settings between which one has to choose; None where it is one alone."""
    if scan is None or scan.front is None or len(scan.front.points) < 2:
        return None
    front = scan.front
    rows = [
        (
            Cell(setting_text(one.parameters)),
            *(Cell(_of_front(front, one, name)) for name in front.figures),
            Cell("" if one.certain else "not proven off it", emphasis="muted"),
        )
        for one in front.points[:_MOST_FRONT]
    ]
    return Table(
        FRONT,
        (
            Column("setting", wraps=True),
            *(
                Column(
                    scan.unit if name == "throughput" else figure_title(name),
                    "right",
                    "more is better" if name == "throughput" else "less is better",
                )
                for name in front.figures
            ),
            Column(""),
        ),
        tuple(rows),
        left_out=max(len(front.points) - _MOST_FRONT, 0),
    )


def _of_front(front: Front, point: FrontPoint, name: str) -> str:
    estimate = point.figures[name]
    if name == "throughput":
        return interval_text(estimate.value or 0.0, estimate.low, estimate.high)
    return figure_text(
        Figure(
            value=estimate.value,
            unit=front.units.get(name, ""),
            low=estimate.low,
            high=estimate.high,
        )
    )


def worth_table(scan: AxesScan | None) -> Table | None:
    """A row per axis, then per pair of axes, largest first; None without effects."""
    if scan is None or not scan.effects:
        return None
    main = [effect for effect in scan.effects if len(effect.axes) == 1]
    pairs = [effect for effect in scan.effects if len(effect.axes) == 2]
    rows = [_effect_row(effect) for effect in (*main, *pairs[:_MOST_PAIRS])]
    return Table(
        WORTH,
        (
            Column("axis"),
            Column("worth (95 % interval)", "right", "throughput at the best over the worst value"),
            Column("best"),
            Column("worst"),
            Column("proven", meaning="the interval, shared among all effects, excludes 1"),
        ),
        tuple(rows),
        left_out=max(len(pairs) - _MOST_PAIRS, 0),
    )


def _effect_row(effect: Effect) -> tuple[Cell, ...]:
    known = effect.factor.low is not None
    return (
        Cell(" x ".join(map(axis_name, effect.axes))),
        Cell(factor_text(effect.factor)),
        Cell(_values(effect, best=True)),
        Cell(_values(effect, best=False)),
        Cell(
            ("yes" if effect.proven else "no") if known else "",
            emphasis="" if effect.proven else "muted",
        ),
    )


def _values(effect: Effect, *, best: bool) -> str:
    parameters = effect.best if best else effect.worst
    if len(effect.axes) == 1:
        return value_text(parameters[effect.axes[0]])
    return setting_text(parameters)


def curve_table(scan: AxesScan | None, *, through_best: bool = False) -> Table | None:
    """A row per curve along an axis of numbers, or of those through the best point alone; None
    without any.
    """
    curves = () if scan is None else scan.curves
    if scan is not None and through_best and scan.best is not None:
        curves = tuple(curve for curve in curves if scan.best in curve.points)
    if scan is None or not curves:
        return None
    return Table(
        CURVES,
        (
            Column("along"),
            Column("at", wraps=True),
            Column("values"),
            Column("best", "right", f"highest throughput of the curve, {scan.unit}"),
            Column("knee", "right", "from there on a larger value gives little"),
            Column("recommended", "right", "the smallest value within 5 % of the best"),
            Column("limiter", meaning="what holds the device or the program back there"),
        ),
        tuple(_curve_row(curve) for curve in curves[:_MOST_CURVES]),
        left_out=max(len(curves) - _MOST_CURVES, 0),
    )


def _curve_row(curve: AxisCurve) -> tuple[Cell, ...]:
    at = max(range(len(curve.levels)), key=lambda place: curve.throughput[place])
    return (
        Cell(axis_name(curve.axis)),
        Cell(setting_text(curve.key)),
        Cell(levels_text(curve.levels)),
        Cell(f"{brief_text(curve.throughput[at])} at {curve.levels[at]:g}"),
        Cell(knee_text(curve)),
        Cell("" if curve.recommended is None else f"{curve.recommended.at:g}"),
        Cell(label_of(curve.limiter), provenance=curve.limiter_text),
    )


def expected_table(scan: AxesScan | None, most: int = _MOST_EXPECTED) -> Table | None:
    """The settings without a rate, the fastest first; None where all were measured."""
    if scan is None or not scan.expected:
        return None
    shown = scan.expected[:most]
    return Table(
        EXPECTED,
        (
            *_value_columns(scan),
            Column(f"expected {scan.unit}", "right", "with its 95 % interval"),
        ),
        tuple(
            (*_value_cells(scan, one.parameters), Cell(estimate_text(one.throughput)))
            for one in shown
        ),
        left_out=scan.settings_left - len(shown),
    )


def left_out_table(scan: AxesScan | None) -> Table | None:
    """The measured points beside what the others predict; None where that cannot be."""
    if scan is None or not scan.left_out:
        return None
    points = {point.point: point for point in scan.points}
    shown = scan.left_out[:_MOST_EXPECTED]
    return Table(
        LEFT_OUT,
        (
            *_value_columns(scan),
            Column(f"measured {scan.unit}", "right"),
            Column("from the others", "right", "with the 95 % interval of such a measurement"),
            Column("inside", meaning="whether the measured throughput lies in that interval"),
        ),
        tuple(
            (
                *_value_cells(scan, points[one.point].parameters),
                Cell(brief_text(points[one.point].throughput)),
                Cell(estimate_text(one.throughput)),
                Cell("yes" if one.inside else "no", emphasis="" if one.inside else "warning"),
            )
            for one in shown
        ),
        left_out=len(scan.left_out) - len(shown),
    )


def _value_columns(scan: AxesScan) -> tuple[Column, ...]:
    return tuple(
        Column(axis_name(axis.name), "right" if axis.is_number else "left") for axis in scan.axes
    )


def _value_cells(scan: AxesScan, parameters: Parameters) -> tuple[Cell, ...]:
    return tuple(Cell(value_text(parameters[axis.name])) for axis in scan.axes)


def knee_text(curve: AxisCurve) -> str:
    """`12.3 (9.8 to 15)`, or the value alone."""
    knee = curve.knee
    if knee is None or knee.n is None:
        return ""
    value = number_text(round(knee.n, 1))
    if knee.low is None or knee.high is None:
        return value
    return f"{value} ({number_text(round(knee.low, 1))} to {number_text(round(knee.high, 1))})"


def axis_cells(summary: Summary) -> Iterator[tuple[Column, str]]:
    """The columns of a table of points that name their values, with the axis of each."""
    assert summary.axes is not None
    for axis in summary.axes.axes:
        yield Column(axis_name(axis.name), "right" if axis.is_number else "left"), axis.name


def mark_of(scan: AxesScan, point: PointSummary) -> Cell:
    """What stands behind a point: best, recommended, as good as the best, or what it lacks; nothing
    behind one that failed.
    """
    if point.state != "ok":
        return Cell("")
    if not point.kept:
        return Cell("not as required", emphasis="warning")
    if point.point == scan.best:
        same = scan.best == scan.recommended
        return Cell("best, recommended" if same else "best")
    if point.point == scan.recommended:
        return Cell("recommended")
    if point.point in scan.overlaps_best:
        return Cell("not proven worse", emphasis="muted")
    return Cell("")
