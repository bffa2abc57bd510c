"""Plots along the levels of a scan: throughput with its fit, latency, and overhead."""

from __future__ import annotations

import math

from profharness.analysis.curves.records import BatchCurve, Recommended, Series, Usl
from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import Estimate, Figure, PointSummary, Summary
from profharness.report.plots.base import (
    Group,
    Plot,
    ends,
    groups,
    has,
    level,
    level_scale,
    log_scale,
    sources,
    values,
)
from profharness.report.plots.chart import Curve, Ends, Scale, chart_json
from profharness.report.plots.colors import CURVES
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import Axis, item_unit, level_name, scan_axis
from profharness.report.text.measured.curves import fit_holds

_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}


def throughput_plot(summary: Summary) -> Plot | None:
    """Measured throughput with intervals, the fitted curve and the recommended point of each
    series.
    """
    axis, unit = scan_axis(summary.points), item_unit(summary)
    if not any(finite(point.throughput) is not None for point in summary.points):
        return None
    curves: list[Curve] = []
    for group in groups(summary):
        curves.extend(_throughput_curves(group, axis, unit))
    rate = Scale(f"throughput ({unit})", zero=True, tick_format="si")
    return Plot(
        "throughput",
        chart_json(curves, level_scale(axis, summary.points), rate),
        360,
        "Throughput",
        "Throughput against the level, with 95 % intervals, the fitted curve and the "
        "recommended point.",
    )


def _throughput_curves(group: Group, axis: Axis | None, unit: str) -> list[Curve]:
    """Measured points, fit and recommended point."""
    points = [point for point in group.points if finite(point.throughput) is not None]
    intervals = [
        Figure(value=point.throughput, unit=unit, low=both[0], high=both[1])
        if (both := throughput_ends(point))
        else None
        for point in points
    ]
    fitted = _fit(group.series)
    curves = [
        Curve(
            group.name or "measured",
            group.color,
            [level(point, axis) for point in points],
            [point.throughput for point in points],
            tip=f"{group.name}\n{{x}}: {{y:4}} {unit}{{note}}".lstrip(),
            notes=sources(points, names.THROUGHPUT),
            ends=ends(intervals),
            width=0 if fitted else 2,
        )
    ]
    if fitted:
        curves.append(
            Curve("fit", group.color, *fitted, width=1.5, dash="dotted", size=0, opacity=0.7)
        )
    if group.series is not None and group.series.recommended is not None:
        curves.append(_recommended_mark(group, group.series, group.series.recommended))
    return curves


def _recommended_mark(group: Group, series: Series, recommended: Recommended) -> Curve:
    """A ring around the recommended point."""
    level_text = level_name(series.axis, recommended.at)
    label = f"recommended: {level_text}" + (f" ({group.name})" if group.name else "")
    return Curve(
        "recommended" if group.name else label,
        group.color,
        [recommended.at],
        [recommended.throughput],
        tip="{note}",
        notes=[label],
        width=0,
        size=17,
        hollow=True,
    )


def _fit(series: Series | None) -> tuple[list[float], list[float]] | None:
    """The fitted model on a grid between the smallest and the largest level; None without a fit
    that holds.
    """
    if series is None or len(series.levels) < 2 or min(series.levels) <= 0 or not fit_holds(series):
        return None
    low, high = math.log(min(series.levels)), math.log(max(series.levels))
    grid = [math.exp(low + (high - low) * step / 60) for step in range(61)]
    if series.batch is not None and series.axis == "batch_size":
        model = _batch_model(series.batch, grid)
    elif series.usl is not None:
        model = _usl_model(series.usl, grid)
    else:
        model = None
    return None if model is None else (grid, model)


def _batch_model(fit: BatchCurve, grid: list[float]) -> list[float] | None:
    top, half, power = finite(fit.t_max.value), finite(fit.b_half.value), finite(fit.p.value)
    if top is None or half is None or not power or half < 0:
        return None
    return [top * b / (b**power + half**power) ** (1 / power) for b in grid]


def _usl_model(fit: Usl, grid: list[float]) -> list[float] | None:
    slope, sigma, kappa = (
        finite(fit.lambda_.value),
        finite(fit.sigma.value),
        finite(fit.kappa.value),
    )
    if slope is None or sigma is None or kappa is None:
        return None
    return [slope * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)) for n in grid]


def latency_plot(summary: Summary) -> Plot | None:
    """Median (or mean) latency with intervals, and the 99th (or 90th) percentile where it was
    measured.
    """
    axis = scan_axis(summary.points)
    main, tail = has(summary, names.LATENCY_P50), _tail(summary)
    if main is None and all(finite(point.latency_ms) is None for point in summary.points):
        return None
    curves: list[Curve] = []
    for group in groups(summary):
        curves.append(_latency_curve(group, axis, main, tail=False))
        if main is not None and (few := _means(group, main, axis)) is not None:
            curves.append(few)
        if tail is not None:
            curves.append(_latency_curve(group, axis, tail, tail=True))
    drawn = [value for one in curves for value in one.y]
    drawn += [end for one in curves for both in one.ends if both for end in both]
    scale = log_scale("latency (ms, log scale)", drawn)
    shown = names.title_of(main) if main else "mean latency"
    return Plot(
        "latency",
        chart_json(curves, level_scale(axis, summary.points), scale),
        360,
        "Latency",
        f"{shown[0].upper()}{shown[1:]} of one trial or request against the level, "
        "with 95 % intervals.",
    )


def _means(group: Group, main: str, axis: Axis | None) -> Curve | None:
    """Mean latencies of the points with too few trials for a median, as open circles; None where
    there are none.
    """
    points = [
        point
        for point, median in zip(group.points, values(group.points, main), strict=True)
        if median is None and finite(point.latency_ms) is not None
    ]
    if not points:
        return None
    return Curve(
        f"{group.name} mean".strip(),
        group.color,
        [level(point, axis) for point in points],
        [finite(point.latency_ms) for point in points],
        tip="{name}\n{x}: {y:4} ms, too few trials for a median",
        width=0,
        hollow=True,
    )


def _tail(summary: Summary) -> str | None:
    """The highest percentile that all points with a median have; else the one that most of them
    have, two at least.
    """
    counts = {
        name: sum(value is not None for value in values(summary.points, name))
        for name in (names.LATENCY_P99, "latency_p95", "latency_p90")
    }
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > 1 else None


def _latency_curve(group: Group, axis: Axis | None, name: str | None, *, tail: bool) -> Curve:
    points = list(group.points)
    figures = [point.metrics.get(name) if name else None for point in points]
    factor = next((_MS.get(figure.unit, 1.0) for figure in figures if figure is not None), 1.0)
    y = (
        [finite(point.latency_ms) for point in points]
        if name is None
        else values(points, name, factor)
    )
    short = "mean" if name is None else names.title_of(name).removeprefix("latency ")
    return Curve(
        f"{group.name} {short}".strip(),
        group.color,
        [level(point, axis) for point in points],
        y,
        tip="{name}\n{x}: {y:4} ms{note}",
        notes=sources(points, name) if name else (),
        ends=ends(figures, factor),
        width=1.2 if tail else 2.0,
        dash="dashed" if tail else "solid",
        hollow=tail,
        size=4 if tail else 7,
    )


def overhead_plot(summary: Summary) -> Plot | None:
    """What each layer costs at each level: the loss of throughput against the bare pass, with
    intervals.
    """
    axis = scan_axis(summary.points)
    layers = list(dict.fromkeys(layer for point in summary.points for layer in point.overhead))
    if not layers or len(summary.points) < 2:
        return None
    curves = []
    for index, (group, layer) in enumerate(
        (group, layer) for group in groups(summary) for layer in layers
    ):
        points = [
            point
            for point in group.points
            if layer in point.overhead and finite(point.overhead[layer].value) is not None
        ]
        if points:
            color = CURVES[index % len(CURVES)]
            curves.append(_overhead_curve(group, points, layer, axis, color))
    if not curves:
        return None
    scale = Scale("overhead (% of throughput)", zero=True)
    return Plot(
        "overhead",
        chart_json(curves, level_scale(axis, summary.points), scale),
        300,
        "Overhead of each layer",
        "Loss of throughput in each instrumented pass against the bare pass, with intervals.",
    )


def _overhead_curve(
    group: Group, points: list[PointSummary], layer: str, axis: Axis | None, color: str
) -> Curve:
    estimates = [point.overhead[layer] for point in points]
    return Curve(
        f"layer {layer}, backend {group.name}" if group.name else layer,
        color,
        [level(point, axis) for point in points],
        [100 * (estimate.value or 0.0) for estimate in estimates],
        tip="{name}\n{x}: {y:.2f} %",
        ends=[_ends(estimate) for estimate in estimates],
    )


def _ends(estimate: Estimate) -> Ends:
    """The ends of its interval in per cent; an open one ends at the value."""
    value = finite(estimate.value)
    low, high = finite(estimate.low), finite(estimate.high)
    if value is None or (low is None and high is None):
        return None
    return 100 * (value if low is None else low), 100 * (value if high is None else high)
