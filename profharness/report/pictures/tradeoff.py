"""Throughput against latency: what each level of a scan gives and costs, with the knee marked."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import PointSummary, Summary
from profharness.report.pictures.options import READABLE, Option, option_json, tooltip
from profharness.report.plots.base import Group, Plot, groups, log_ticks
from profharness.report.text import names
from profharness.report.text.figures import finite, number_text
from profharness.report.text.labels import Axis, item_unit, level_name, scan_axis

_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_MARGIN = 1.25  # of the log axis beyond its data
_LATENCIES = (names.LATENCY_P50, names.LATENCY_MEAN)


@dataclass(frozen=True)
class Spot:
    """One level: items/s, latency in ms with its interval, and its level."""

    throughput: float
    latency_ms: float
    low_ms: float | None
    high_ms: float | None
    level: float
    name: str


def tradeoff_plot(summary: Summary) -> Plot | None:
    """One curve per series; None where no curve has two levels with both figures."""
    axis = scan_axis(summary.points)
    if axis is None:
        return None
    curves = [(group, _spots(group.points, axis)) for group in groups(summary)]
    curves = [(group, spots) for group, spots in curves if len(spots) > 1]
    if not curves:
        return None
    unit = item_unit(summary)
    ends = [
        end
        for _, spots in curves
        for spot in spots
        for end in (spot.latency_ms, spot.low_ms, spot.high_ms)
        if end is not None and end > 0
    ]
    low, high = min(ends) / _MARGIN, max(ends) * _MARGIN
    series = [part for group, spots in curves for part in _series(group, spots, unit)]
    drawn = [_name(group) for group, _ in curves]
    option: Option = {
        "legend": {"data": drawn, "show": len(drawn) > 1},
        "tooltip": tooltip("told"),
        "xAxis": {
            "type": "value",
            "min": 0,
            "name": f"throughput ({unit})",
            "axisLabel": {"formatter": "si"},
        },
        "yAxis": {
            "type": "log",
            "name": "latency p50 (ms, log scale)",
            "nameGap": 40,
            "min": low,
            "max": high,
            "axisLabel": {"formatter": "number", "customValues": log_ticks(low, high)},
            "axisTick": {"customValues": log_ticks(low, high)},
        },
        "series": series,
    }
    marked = [text for group, spots in curves if (text := _knee_text(group, spots))]
    return Plot(
        "tradeoff",
        option_json(option),
        360,
        "Throughput against latency",
        "Each mark is a level of the scan: to the right it gives more, higher up it answers later."
        + "".join(f" {text}." for text in marked),
    )


def _name(group: Group) -> str:
    return group.name or "measured"


def _spots(points: tuple[PointSummary, ...], axis: Axis) -> list[Spot]:
    spots = []
    for point in points:
        throughput, level = finite(point.throughput), getattr(point, axis)
        latency = next(
            (
                figure
                for name in _LATENCIES
                if (figure := point.metrics.get(name)) is not None
                and finite(figure.value)
                and figure.unit in _MS
            ),
            None,
        )
        if throughput is None or level is None or latency is None:
            continue
        factor = _MS[latency.unit]
        value, low, high = (
            None if finite(one) is None or one is None else one * factor
            for one in (latency.value, latency.low, latency.high)
        )
        if value is None or value <= 0:
            continue
        spots.append(Spot(throughput, value, low, high, float(level), level_name(axis, level)))
    return spots


def _knee(group: Group, spots: list[Spot]) -> Spot | None:
    """The first level at or behind the knee of its curve, else the recommended level."""
    series = group.series
    if series is None:
        return None
    if series.knee is not None and series.knee.n is not None:
        at: float | None = series.knee.n
    else:
        at = None if series.recommended is None else series.recommended.at
    if at is None:
        return None
    return next(
        (spot for spot in sorted(spots, key=lambda one: one.level) if spot.level >= at), None
    )


def _knee_text(group: Group, spots: list[Spot]) -> str:
    spot, series = _knee(group, spots), group.series
    if spot is None or series is None:
        return ""
    of = f" of {group.name}" if group.name else ""
    if series.knee is not None and series.knee.n is not None:
        return f"The knee{of} is at {number_text(round(series.knee.n, 1))}, marked at {spot.name}"
    return f"The recommended level{of} is {spot.name}"


def _series(group: Group, spots: list[Spot], unit: str) -> list[Option]:
    look = {"color": group.color}
    line: Option = {
        "type": "line",
        "name": _name(group),
        "itemStyle": look,
        "lineStyle": {"color": group.color, "width": 2},
        "symbol": "circle",
        "symbolSize": 7,
        "data": [
            {
                "value": [spot.throughput, spot.latency_ms],
                "told": f"{_name(group)}, {spot.name}\n{number_text(round(spot.throughput))} {unit}"
                f", {spot.latency_ms:.4g} ms",
            }
            for spot in spots
        ],
    }
    parts = [line]
    whiskers = [
        [spot.throughput, spot.low_ms, spot.high_ms]
        for spot in spots
        if spot.low_ms is not None and spot.high_ms is not None and spot.low_ms > 0
    ]
    if whiskers:
        parts.append(
            {
                "type": "custom",
                "renderItem": "interval",
                "name": _name(group),
                "itemStyle": look,
                "encode": {"x": 0, "y": [1, 2]},
                "silent": True,
                "data": whiskers,
            }
        )
    if (knee := _knee(group, spots)) is not None:
        parts.append(_knee_mark(group, knee))
    return parts


def _knee_mark(group: Group, knee: Spot) -> Option:
    return {
        "type": "scatter",
        "name": _name(group),
        "symbol": "circle",
        "symbolSize": 17,
        "itemStyle": {"color": "none", "borderColor": group.color, "borderWidth": 2},
        "label": {
            "show": True,
            "position": "left",
            "distance": 10,
            "offset": [0, -11],
            "formatter": "told",
            **READABLE,
        },
        "silent": True,
        "z": 4,
        "data": [{"value": [knee.throughput, knee.latency_ms], "told": knee.name}],
    }
