"""Throughput against latency: what each level of a scan gives and costs, with the knee marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import PointSummary, Summary
from profharness.report.pictures.options import READABLE, Option, option_json, tooltip
from profharness.report.plots.base import Group, Plot, groups, log_ticks
from profharness.report.text import names
from profharness.report.text.figures import finite, number_text
from profharness.report.text.labels import Axis, item_unit, level_name, scan_axis

_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_MARGIN = 1.25  # of the log axis beyond its data
_WIDE, _TALL = (900, 260), 260
"""Pixels of the plot's area: on a usual page and on a telephone, and its height."""
_LATENCIES = (names.LATENCY_P50, names.LATENCY_MEAN)


@dataclass(frozen=True)
class Spot:
    """One level: items/s and latency in ms with their intervals, which latency it is, and its
    level.
    """

    throughput: float
    ends: tuple[float, float] | None
    latency_ms: float
    low_ms: float | None
    high_ms: float | None
    figure: str
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
            "name": f"{_latency_name(curves)} (ms, log scale)",
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


def _latency_name(curves: Sequence[tuple[Group, list[Spot]]]) -> str:
    """Which latency all levels have: the median where there were requests or trials enough."""
    kinds = {spot.figure for _, spots in curves for spot in spots}
    return names.title_of(kinds.pop()) if len(kinds) == 1 else "latency, p50 or mean"


def _name(group: Group) -> str:
    return group.name or "measured"


def _spots(points: tuple[PointSummary, ...], axis: Axis) -> list[Spot]:
    spots = []
    for point in points:
        throughput, level = finite(point.throughput), getattr(point, axis)
        which, latency = next(
            (
                (name, figure)
                for name in _LATENCIES
                if (figure := point.metrics.get(name)) is not None
                and finite(figure.value)
                and figure.unit in _MS
            ),
            ("", None),
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
        spots.append(
            Spot(
                throughput,
                throughput_ends(point),
                value,
                low,
                high,
                which,
                float(level),
                level_name(axis, level),
            )
        )
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
    across = [[spot.latency_ms, *spot.ends, 0] for spot in spots if spot.ends]
    if across:
        parts.append(
            {
                "type": "custom",
                "renderItem": "interval_across",
                "name": _name(group),
                "itemStyle": {**look, "opacity": 0.6},
                "encode": {"x": [1, 2], "y": 0},
                "silent": True,
                "data": across,
            }
        )
    if (knee := _knee(group, spots)) is not None:
        parts.append(_knee_mark(group, knee, _label_place(spots, knee)))
    return parts


def _label_place(spots: list[Spot], knee: Spot) -> tuple[str, int]:
    """Beside which side of the knee's ring its name stands, and how many pixels below its middle:
    the first place that no line from the knee to its neighbours crosses, on a plot of a usual
    page and on one of a telephone.
    """
    at = spots.index(knee)
    most = max(end for spot in spots for end in (spot.throughput, *(spot.ends or ())))
    logs = [math.log(spot.latency_ms) for spot in spots]
    ends = [math.log(end) for spot in spots for end in (spot.low_ms, spot.high_ms) if end]
    tall = _TALL / max(max(logs + ends) - min(logs + ends), 0.1)
    sides = ("left", "right") if knee.throughput > 0.2 * most else ("right",)
    sides = sides if knee.throughput < 0.8 * most else ("left",)
    lines = [
        (wide * (spots[near].throughput - knee.throughput) / most, tall * (logs[at] - logs[near]))
        for near in (at - 1, at + 1)
        if 0 <= near < len(spots)
        for wide in _WIDE
    ]
    places = [(side, down) for down in (-11, 11, -26, 26) for side in sides]
    free = (place for place in places if not any(_crosses(line, place) for line in lines))
    return next(free, places[0])


def _crosses(line: tuple[float, float], place: tuple[str, int]) -> bool:
    side, down = place
    return any(
        17 < (-x if side == "left" else x) < 100 and abs(y - down) < 9 for x, y in _along(line)
    )


def _along(line: tuple[float, float]) -> Iterator[tuple[float, float]]:
    for step in range(1, 61):
        yield line[0] * step / 60, line[1] * step / 60


def _knee_mark(group: Group, knee: Spot, place: tuple[str, int]) -> Option:
    return {
        "type": "scatter",
        "name": _name(group),
        "symbol": "circle",
        "symbolSize": 17,
        "itemStyle": {"color": "none", "borderColor": group.color, "borderWidth": 2},
        "label": {
            "show": True,
            "position": place[0],
            "distance": 10,
            "offset": [0, place[1]],
            "formatter": "told",
            **READABLE,
        },
        "silent": True,
        "z": 4,
        "data": [{"value": [knee.throughput, knee.latency_ms], "told": knee.name}],
    }
