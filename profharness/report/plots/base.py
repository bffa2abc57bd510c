"""What the report's plots share: curves of a scan, their scales, intervals and sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.plots.chart import Ends, Scale
from profharness.report.plots.colors import CURVES, curve_color
from profharness.report.text.figures import finite, half_width
from profharness.report.text.labels import Axis, scan_axis, several_batches

SERIES_COLORS = CURVES
_FEWEST_TICKS = 3
_MARGIN = 1.25  # of a log axis beyond its data


@dataclass(frozen=True)
class Plot:
    """An ECharts option as JSON (see `chart`), its height in pixels, its caption and a description
    in words.
    """

    name: str
    json: str
    height: int
    title: str
    description: str


@dataclass(frozen=True)
class Group:
    """Points of one curve, smallest level first; `name` is empty when the run has one curve
    only.
    """

    name: str
    points: tuple[PointSummary, ...]
    color: str
    series: Series | None = None


def groups(summary: Summary) -> tuple[Group, ...]:
    """The points by curve (backend, and batch size where clients vary), each with its fitted series
    where one exists.

    Open loops stand on no curve of closed ones.
    """
    axis = scan_axis(summary.points)
    apart = several_batches(summary.points)
    by_curve: dict[tuple[str, int | None], list[PointSummary]] = {}
    for point in summary.points:
        curve = by_curve.setdefault((point.backend, point.batch_size if apart else None), [])
        if axis == "rate" or point.rate is None:
            curve.append(point)
    several = len({backend for backend, _ in by_curve}) > 1
    curves = []
    for index, ((backend, batch), points) in enumerate(by_curve.items()):
        if axis is not None:
            points.sort(key=lambda point: getattr(point, axis) or 0)
        series = next(
            (
                series
                for series in summary.series
                if series.key.get("backend", backend) == backend
                and series.key.get("batch_size", str(batch)) == str(batch)
            ),
            None,
        )
        words = [backend] if several else []
        curves.append(
            Group(
                name=", ".join([*words, f"batch {batch}"] if batch is not None else words),
                points=tuple(points),
                series=series,
                color=curve_color(backend, index, alone=not apart),
            )
        )
    return tuple(group for group in curves if group.points)


def level_scale(axis: Axis | None, points: Sequence[PointSummary]) -> Scale:
    """A log axis whose ticks are the measured levels (thinned to eight), or point names where there
    are no levels.
    """
    if axis is None:
        return Scale("point", category=True)
    measured = {getattr(point, axis) for point in points if point.state == "ok"} - {None}
    levels = sorted(float(level) for level in measured)
    titles = {
        "batch_size": "batch size",
        "concurrency": "concurrency",
        "processes": "processes",
        "rate": "requests/s",
    }
    shown = levels[:: max(1, -(-len(levels) // 8))]
    if not levels or levels[0] <= 0:
        return Scale(titles[axis], ticks=shown)
    return Scale(
        f"{titles[axis]} (log scale)",
        log=True,
        ticks=shown,
        tick_format="level",
        low=levels[0] / _MARGIN,
        high=levels[-1] * _MARGIN,
    )


def log_scale(title: str, shown: Sequence[float | None], unit: str = "") -> Scale:
    """A log axis over the data with ticks at 1, 2 and 5 of each decade (decades alone beyond four),
    with SI prefixes for `unit`.
    """
    positive = [value for value in shown if value is not None and value > 0]
    if not positive:
        return Scale(title)
    low, high = min(positive) / _MARGIN, max(positive) * _MARGIN
    return Scale(
        title,
        log=True,
        ticks=log_ticks(low, high),
        tick_format=f"si:{unit}" if unit else "number",
        low=low,
        high=high,
    )


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade between the ends; decades alone where there are over four, all
    digits, and then quarters, where there would be fewer than three.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))

    def between(steps: Sequence[float]) -> list[float]:
        ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [float(f"{tick:.3g}") for tick in ticks if low <= tick <= high]

    ticks = between((1, 2, 5) if last - first <= 5 else (1,))
    if len(ticks) < _FEWEST_TICKS:
        ticks = between(range(1, 10))
    if len(ticks) < _FEWEST_TICKS:
        ticks = between([step / 4 for step in range(4, 40)])
    return ticks


def level(point: PointSummary, axis: Axis | None) -> float | str:
    """The point's place on `level_axis`."""
    value = getattr(point, axis) if axis is not None else None
    return point.point if value is None else float(value)


def ends(figures: Sequence[Figure | None], factor: float = 1.0) -> list[Ends]:
    """The ends of the figures' intervals, times `factor`; None where an interval is open."""
    return [
        (figure.low * factor, figure.high * factor)
        if figure is not None
        and figure.value is not None
        and figure.low is not None
        and figure.high is not None
        and half_width(figure.value, figure.low, figure.high) is not None
        else None
        for figure in figures
    ]


def values(points: Sequence[PointSummary], name: str, factor: float = 1.0) -> list[float | None]:
    """The named metric of each point times `factor`; None where it was not measured."""
    measured = [
        finite(figure.value) if (figure := point.metrics.get(name)) is not None else None
        for point in points
    ]
    return [None if value is None else value * factor for value in measured]


def sources(points: Sequence[PointSummary], name: str) -> list[str]:
    """Where the named metric of each point came from, for the text under the pointer."""
    return [
        f"\nfrom {figure.source}"
        if (figure := point.metrics.get(name)) is not None and figure.source
        else ""
        for point in points
    ]


def has(summary: Summary, *choices: str) -> str | None:
    """The first of the metrics that any point has a value for."""
    return next(
        (
            name
            for name in choices
            if any(value is not None for value in values(summary.points, name))
        ),
        None,
    )
