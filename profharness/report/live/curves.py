"""The curve of a run so far, as the report will draw it: throughput against the level, a line per
backend or per setting of the other axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.live.records import LiveRun
from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import PointSummary
from profharness.report.live.svg import chart_svg
from profharness.report.plots.base import level, level_scale
from profharness.report.plots.chart import Curve, Scale
from profharness.report.plots.colors import CURVES, curve_color
from profharness.report.text.figures import finite
from profharness.report.text.labels import Axis, scan_axis, several_batches
from profharness.report.text.rates import throughput_text

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_LINES = 8
_LEAST_RATIO = 8
"""Of the largest to the smallest value of an axis: from there on a scale of doublings reads
better."""


@dataclass(frozen=True)
class Drawn:
    """The picture, and its legend: names and colours, none where one line needs no name."""

    svg: Markup
    legend: tuple[tuple[str, str], ...]
    left_out: int = 0


def drawn(run: LiveRun) -> Drawn | None:
    """None before any point has a throughput."""
    points = [point for point in run.curve if finite(point.throughput) is not None]
    if not points:
        return None
    lines, across, left_out = _of_axes(run, points) if run.axes else _of_levels(run, points)
    return Drawn(
        chart_svg(
            lines,
            across,
            Scale(f"throughput ({run.unit})", zero=True),
            words="Throughput of the points so far against their level, with 95 % intervals.",
        ),
        tuple((line.name, line.color) for line in lines) if len(lines) > 1 else (),
        left_out,
    )


def _line(
    name: str, color: str, points: Sequence[tuple[float | str, PointSummary]], run: LiveRun
) -> Curve:
    return Curve(
        name,
        color,
        [x for x, _ in points],
        [point.throughput for _, point in points],
        notes=[
            f"{setting_text(point.parameters) or point.point}: {throughput_text(point)} {run.unit}"
            for _, point in points
        ],
        ends=[throughput_ends(point) for _, point in points],
    )


def _of_levels(run: LiveRun, points: Sequence[PointSummary]) -> tuple[list[Curve], Scale, int]:
    axis: Axis | None = scan_axis(points)
    apart = several_batches(points)
    by_curve: dict[tuple[str, int | None], list[PointSummary]] = {}
    for point in points:
        if axis == "rate" or point.rate is None:
            key = (point.backend, point.batch_size if apart else None)
            by_curve.setdefault(key, []).append(point)
    lines = []
    for place, ((backend, batch), mine) in enumerate(list(by_curve.items())[:_MOST_LINES]):
        words = [backend] if backend else []
        name = ", ".join([*words, *([f"batch {batch}"] if batch is not None else [])])
        if axis is not None:
            mine.sort(key=lambda point: getattr(point, axis) or 0)
        color = curve_color(backend, place, alone=not apart)
        lines.append(_line(name, color, [(level(point, axis), point) for point in mine], run))
    return lines, level_scale(axis, points), max(len(by_curve) - _MOST_LINES, 0)


def _of_axes(run: LiveRun, points: Sequence[PointSummary]) -> tuple[list[Curve], Scale, int]:
    """Along the axis of numbers with most values, else the first axis, a line for each setting of
    the others.
    """
    along = max(run.axes, key=lambda name: _worth(name, points))
    # by when each was first measured, so that a line keeps its colour as others come
    by_curve: dict[str, list[tuple[float | str, PointSummary]]] = {
        _rest(one.summary, along): [] for one in run.points if one.summary.parameters
    }
    for point in points:
        value = point.parameters.get(along)
        if value is not None:
            by_curve.setdefault(_rest(point, along), []).append((value, point))
    by_curve = {name: mine for name, mine in by_curve.items() if mine}
    is_number = _worth(along, points) > 0
    lines = []
    for place, (name, mine) in enumerate(list(by_curve.items())[:_MOST_LINES]):
        if is_number:
            mine.sort(key=lambda one: float(one[0]))
        lines.append(_line(name, CURVES[place % len(CURVES)], mine, run))
    left_out = max(len(by_curve) - _MOST_LINES, 0)
    title = along.removeprefix("env:")
    if not is_number:
        return lines, Scale(title, category=True), left_out
    levels = sorted({float(x) for line in lines for x in line.x if x is not None})
    shown = levels[:: max(1, -(-len(levels) // 8))]
    if levels[0] <= 0 or levels[-1] < _LEAST_RATIO * levels[0]:
        return lines, Scale(title, ticks=shown), left_out
    scale = Scale(title, log=True, ticks=shown, low=levels[0] / 1.1, high=levels[-1] * 1.1)
    return lines, scale, left_out


def _rest(point: PointSummary, along: str) -> str:
    """The setting of all axes but one."""
    return setting_text({name: one for name, one in point.parameters.items() if name != along})


def _worth(name: str, points: Sequence[PointSummary]) -> int:
    """How many values of an axis were measured; 0 where one of them is no number."""
    values = {point.parameters.get(name) for point in points}
    return 0 if any(isinstance(value, str) for value in values) else len(values)
