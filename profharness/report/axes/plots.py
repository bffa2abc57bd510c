"""Plots of a scan of a command: a curve along each axis of numbers, and what the axes are worth."""

from __future__ import annotations

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.axes.records import AxesScan, AxisCurve
from profharness.report.axes.cap_plots import cap_plots
from profharness.report.axes.words import axis_name
from profharness.report.plots.base import Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.plots.colors import CURVES
from profharness.stats.bootstrap import Z95

_MOST_LINES = 8
_LEAST_RATIO = 8
"""Of the largest to the smallest value: from there on a scale of doublings reads better."""


def axes_plots(scan: AxesScan | None) -> tuple[Plot, ...]:
    """One plot per axis of numbers with the curves at each setting of the others, the one through
    the best point first; then the parts of the values of each category.
    """
    if scan is None:
        return ()
    plots = [plot for axis in scan.axes if axis.is_number and (plot := _along(scan, axis.name))]
    return (*plots, *cap_plots(scan), *_categories(scan))


def _along(scan: AxesScan, name: str) -> Plot | None:
    curves = [curve for curve in scan.curves if curve.axis == name]
    if not curves:
        return None
    lines = [
        line for at, curve in enumerate(curves[:_MOST_LINES]) for line in _lines(curve, at, scan)
    ]
    left_out = len(curves) - _MOST_LINES
    rest = f" {left_out} further settings are left out." if left_out > 0 else ""
    return Plot(
        f"axis-{scan_index(scan, name)}",
        chart_json(
            lines,
            _scale(name, curves),
            Scale(f"throughput ({scan.unit})", zero=True, tick_format="si"),
        ),
        360,
        f"Throughput along {axis_name(name)}",
        f"Throughput against {axis_name(name)} at each setting of the other axes, with 95 % "
        f"intervals and the recommended value of the first curve.{rest}",
    )


def scan_index(scan: AxesScan, name: str) -> int:
    """The number of an axis, for the name of its plot."""
    return [axis.name for axis in scan.axes].index(name)


def _lines(curve: AxisCurve, at: int, scan: AxesScan) -> list[Curve]:
    name = setting_text(curve.key) or "measured"
    color = CURVES[at % len(CURVES)]
    lines = [
        Curve(
            name,
            color,
            list(curve.levels),
            list(curve.throughput),
            tip=f"{{name}}\n{axis_name(curve.axis)} {{x}}: {{y:4}} {scan.unit}",
            ends=[
                None if sem is None else (max(rate - Z95 * sem, 0.0), rate + Z95 * sem)
                for rate, sem in zip(curve.throughput, curve.throughput_sem, strict=True)
            ],
        )
    ]
    if at == 0 and curve.recommended is not None:
        lines.append(
            Curve(
                "recommended",
                color,
                [curve.recommended.at],
                [curve.recommended.throughput],
                tip="{note}",
                notes=[f"recommended: {axis_name(curve.axis)} {curve.recommended.at:g} ({name})"],
                width=0,
                size=17,
                hollow=True,
            )
        )
    return lines


def _scale(name: str, curves: list[AxisCurve]) -> Scale:
    levels = sorted({level for curve in curves for level in curve.levels})
    shown = levels[:: max(1, -(-len(levels) // 8))]
    if levels[0] <= 0 or levels[-1] < _LEAST_RATIO * levels[0]:
        return Scale(axis_name(name), ticks=shown)
    return Scale(axis_name(name), log=True, ticks=shown, low=levels[0] / 1.1, high=levels[-1] * 1.1)


def _categories(scan: AxesScan) -> list[Plot]:
    """What each value of a category does to the mean throughput."""
    plots = []
    for effect in scan.effects:
        axis = next(axis for axis in scan.axes if axis.name == effect.axes[0])
        if len(effect.axes) > 1 or axis.is_number or len(effect.levels) != len(axis.values):
            continue
        marks = Curve(
            axis_name(axis.name),
            CURVES[0],
            [str(value) for value in axis.values],
            list(effect.levels),
            tip="{x}: {y:4} times the mean",
            width=0,
            size=11,
        )
        plots.append(
            Plot(
                f"category-{scan_index(scan, axis.name)}",
                chart_json(
                    [marks],
                    Scale(axis_name(axis.name), category=True),
                    Scale("throughput over its mean", zero=True),
                    legend=False,
                ),
                260,
                f"Effect of {axis_name(axis.name)}",
                f"Throughput at each value of {axis_name(axis.name)} over the mean, at the average "
                "of the other axes.",
            )
        )
    return plots
