"""Plots along the levels of a scan: throughput with its fit, latency, and overhead."""

from __future__ import annotations

import math
from typing import Any

from profharness.analysis.curves.records import BatchCurve, Recommended, Series, Usl
from profharness.analysis.records import Estimate, Figure, PointSummary, Summary
from profharness.report.plots.base import (
    LEGEND,
    SERIES_COLORS,
    Group,
    Plot,
    Trace,
    error_bars,
    figure_json,
    groups,
    has,
    level,
    level_axis,
    log_ticks,
    scatter,
    sources,
    values,
)
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import item_unit, level_name, scan_axis
from profharness.report.text.rates import throughput_ends
from profharness.report.text.scan_sentences import fit_holds

_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}


def throughput_plot(summary: Summary) -> Plot | None:
    """Measured throughput with intervals, the fitted curve and the recommended point of each
    series.
    """
    axis, unit = scan_axis(summary.points), item_unit(summary)
    if not any(finite(point.throughput) is not None for point in summary.points):
        return None
    traces: list[Trace] = []
    for index, group in enumerate(groups(summary)):
        traces.extend(_throughput_traces(group, axis, unit, legend=index == 0))
    layout = {
        "xaxis": level_axis(axis, summary.points),
        "legend": LEGEND,
        "hovermode": "closest",
        "yaxis": {
            "title": {"text": f"throughput ({unit})"},
            "rangemode": "tozero",
            "exponentformat": "SI",
        },
    }
    return Plot(
        "throughput",
        figure_json(traces, layout),
        360,
        "Throughput",
        "Throughput against the level, with 95 % intervals, the fitted curve and the "
        "recommended point.",
    )


def _throughput_traces(group: Group, axis: Any, unit: str, *, legend: bool) -> list[Trace]:
    """Measured points, fit and recommended point; the latter two enter the legend once for all
    curves.
    """
    points = [point for point in group.points if finite(point.throughput) is not None]
    x, y = [level(point, axis) for point in points], [point.throughput or 0.0 for point in points]
    bars = error_bars(
        [
            Figure(value=point.throughput, unit=unit, low=ends[0], high=ends[1])
            if (ends := throughput_ends(point))
            else None
            for point in points
        ]
    )
    fitted = _fit(group.series)
    measured = scatter(
        x,
        y,
        group.color,
        name=group.name or "measured",
        error_y=bars,
        mode="markers" if fitted else "lines+markers",
        customdata=sources(points, names.THROUGHPUT),
        hovertemplate=f"%{{x}}: %{{y:,.4~g}} {unit}%{{customdata}}<extra>{group.name}</extra>",
    )
    traces = [measured]
    if fitted:
        traces.append(
            scatter(
                *fitted,
                group.color,
                name="fit",
                mode="lines",
                hoverinfo="skip",
                opacity=0.7,
                showlegend=legend,
                line={"color": group.color, "width": 1.5, "dash": "dot"},
            )
        )
    if group.series is not None and group.series.recommended is not None:
        traces.append(_recommended_trace(group, group.series, group.series.recommended, legend))
    return traces


def _recommended_trace(
    group: Group, series: Series, recommended: Recommended, legend: bool
) -> Trace:
    """A ring around the recommended point."""
    level_text = level_name(series.axis, recommended.at)
    label = f"recommended: {level_text}" + (f" ({group.name})" if group.name else "")
    return scatter(
        [recommended.at],
        [recommended.throughput],
        group.color,
        mode="markers",
        showlegend=legend,
        name="recommended" if group.name else label,
        marker={
            "symbol": "circle-open",
            "size": 17,
            "color": group.color,
            "line": {"width": 2.5},
        },
        hovertemplate=f"{label}<extra></extra>",
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
    traces: list[Trace] = []
    for group in groups(summary):
        traces.append(_latency_trace(group, axis, main, tail=False))
        if main is not None and (few := _means(group, main, axis)) is not None:
            traces.append(few)
        if tail is not None:
            traces.append(_latency_trace(group, axis, tail, tail=True))
    layout = {
        "xaxis": level_axis(axis, summary.points),
        "legend": LEGEND,
        "hovermode": "closest",
        "yaxis": {
            "title": {"text": "latency (ms, log scale)"},
            **log_ticks([value for trace in traces for value in trace.y]),
        },
    }
    shown = names.title_of(main) if main else "mean latency"
    return Plot(
        "latency",
        figure_json(traces, layout),
        360,
        "Latency",
        f"{shown[0].upper()}{shown[1:]} of one trial or request against the level, "
        "with 95 % intervals.",
    )


def _means(group: Group, main: str, axis: Any) -> Trace | None:
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
    label = f"{group.name} mean".strip()
    return scatter(
        [level(point, axis) for point in points],
        [finite(point.latency_ms) for point in points],
        group.color,
        name=label,
        mode="markers",
        marker={"symbol": "circle-open", "size": 7, "color": group.color, "line": {"width": 1.5}},
        hovertemplate=f"%{{x}}: %{{y:,.4~g}} ms, too few trials for a median<extra>{label}</extra>",
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


def _latency_trace(group: Group, axis: Any, name: str | None, *, tail: bool) -> Trace:
    points = list(group.points)
    figures = [point.metrics.get(name) if name else None for point in points]
    factor = next((_MS.get(figure.unit, 1.0) for figure in figures if figure is not None), 1.0)
    y = (
        [finite(point.latency_ms) for point in points]
        if name is None
        else values(points, name, factor)
    )
    short = "mean" if name is None else names.title_of(name).removeprefix("latency ")
    label = f"{group.name} {short}".strip()
    look = (
        {
            "line": {"color": group.color, "width": 1.2, "dash": "dash"},
            "marker": {"color": group.color, "size": 4},
        }
        if tail
        else {}
    )
    return scatter(
        [level(point, axis) for point in points],
        y,
        group.color,
        name=label,
        error_y=error_bars(figures, factor),
        customdata=sources(points, name) if name else [""] * len(points),
        hovertemplate=f"%{{x}}: %{{y:,.4~g}} ms %{{customdata}}<extra>{label}</extra>",
        **look,
    )


def overhead_plot(summary: Summary) -> Plot | None:
    """What each layer costs at each level: the loss of throughput against the bare pass, with
    intervals.
    """
    axis = scan_axis(summary.points)
    layers = list(dict.fromkeys(layer for point in summary.points for layer in point.overhead))
    if not layers or len(summary.points) < 2:
        return None
    traces = []
    for index, (group, layer) in enumerate(
        (group, layer) for group in groups(summary) for layer in layers
    ):
        points = [
            point
            for point in group.points
            if layer in point.overhead and finite(point.overhead[layer].value) is not None
        ]
        if points:
            traces.append(
                _overhead_trace(
                    group, points, layer, axis, SERIES_COLORS[index % len(SERIES_COLORS)]
                )
            )
    if not traces:
        return None
    layout = {
        "xaxis": level_axis(axis, summary.points),
        "legend": LEGEND,
        "hovermode": "closest",
        "yaxis": {"title": {"text": "overhead (% of throughput)"}, "rangemode": "tozero"},
    }
    return Plot(
        "overhead",
        figure_json(traces, layout),
        300,
        "Overhead of each layer",
        "Loss of throughput in each instrumented pass against the bare pass, with intervals.",
    )


def _overhead_trace(
    group: Group, points: list[PointSummary], layer: str, axis: Any, color: str
) -> Trace:
    estimates = [point.overhead[layer] for point in points]
    up, down = (
        [_gap(estimate, estimate.high) for estimate in estimates],
        [_gap(estimate, estimate.low) for estimate in estimates],
    )
    label = f"layer {layer}, backend {group.name}" if group.name else layer
    return scatter(
        [level(point, axis) for point in points],
        [100 * (estimate.value or 0.0) for estimate in estimates],
        color,
        name=label,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": up,
            "arrayminus": down,
            "thickness": 1.2,
            "width": 3,
        },
        hovertemplate=f"%{{x}}: %{{y:.2f}} %<extra>{label}</extra>",
    )


def _gap(estimate: Estimate, end: float | None) -> float:
    shown = finite(end)
    return 0.0 if shown is None or estimate.value is None else 100 * abs(shown - estimate.value)
