"""Scans of two settings as a heat map, of more as parallel coordinates."""

from __future__ import annotations

from profharness.analysis.records import PointSummary, Summary
from profharness.report.pictures.options import Option, option_json, tooltip
from profharness.report.pictures.settings import Setting, measured, settings
from profharness.report.plots.base import Plot
from profharness.report.text.figures import brief_text
from profharness.report.text.labels import item_unit
from profharness.units import format_share

MOST_LINES = 500
_SCALE = ("#dcebea", "#7dbdbb", "#0f8b8d", "#0a5557")


def grid_plot(summary: Summary) -> Plot | None:
    """Throughput over what the scan varied: nothing for one setting, and for one of several
    backends, whose curves show it.
    """
    points = measured(summary.points)
    varied = settings(points)
    if len(varied) == 2 and not any(isinstance(one.values[0], str) for one in varied):
        return _heat_map(summary, points, varied)
    return _parallel(summary, points, varied) if len(varied) > 2 else None


def _name(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _heat_map(
    summary: Summary, points: list[PointSummary], varied: tuple[Setting, ...]
) -> Plot | None:
    across, up = sorted(varied, key=lambda one: -len(one.values))
    cells: dict[tuple[int, int], PointSummary] = {}
    for point in points:  # the best of several points in one cell
        key = (across.place(point), up.place(point))
        if key not in cells or (point.throughput or 0) > (cells[key].throughput or 0):
            cells[key] = point
    if len(cells) < 4 or len(cells) < 0.5 * len(across.values) * len(up.values):
        return None
    unit = item_unit(summary)
    data = [_cell(place, point, (across, up), unit) for place, point in cells.items()]
    best = max(cells.values(), key=lambda point: point.throughput or 0.0)
    option: Option = {
        "legend": {"show": False},
        "tooltip": tooltip("told"),
        "xAxis": {
            "type": "category",
            "data": [_name(value) for value in across.values],
            "name": across.title,
        },
        "yAxis": {
            "type": "category",
            "data": [_name(value) for value in up.values],
            "name": up.title,
            "nameGap": 60,
        },
        "visualMap": {
            "show": False,
            "min": min(point.throughput or 0.0 for point in cells.values()),
            "max": best.throughput,
            "dimension": 2,
            "inRange": {"color": list(_SCALE)},
        },
        "series": [
            {
                "type": "heatmap",
                "name": "throughput",
                "label": {"show": len(cells) <= 120, "formatter": "named"},
                "data": data,
            }
        ],
    }
    return Plot(
        "heat",
        option_json(option),
        110 + 34 * len(up.values),
        f"Throughput by {across.title} and {up.title}",
        f"{unit} at each {across.title} and {up.title}; the best is "
        f"{brief_text(best.throughput or 0.0)} "
        f"at {_where(best, varied)}. {_importance(varied, len(points))}",
    )


def _cell(
    place: tuple[int, int], point: PointSummary, varied: tuple[Setting, Setting], unit: str
) -> Option:
    value = point.throughput or 0.0
    return {
        "value": [*place, value],
        "name": brief_text(value, 3),
        "told": f"{_where(point, varied)}\n{brief_text(value)} {unit}",
    }


def _where(point: PointSummary, varied: tuple[Setting, ...]) -> str:
    return ", ".join(f"{one.title} {_name(getattr(point, one.field))}" for one in varied)


def _importance(varied: tuple[Setting, ...], count: int) -> str:
    known = [(one.importance, one.title) for one in varied if one.importance is not None]
    if not known:
        return f"{count} points do not tell which setting matters most."
    said = ", ".join(
        f"{title} {format_share(share, 0)}" for share, title in sorted(known, reverse=True)
    )
    return (
        f"Of the variance of the logarithm of throughput over {count} points each setting alone "
        f"explains: {said}."
    )


def _parallel(summary: Summary, points: list[PointSummary], varied: tuple[Setting, ...]) -> Plot:
    unit = item_unit(summary)
    ordered = sorted(varied, key=lambda one: -(one.importance or 0.0))
    shown = sorted(points, key=lambda point: -(point.throughput or 0.0))[:MOST_LINES]
    lines = [
        {
            "value": [*(one.place(point) for one in ordered), point.throughput],
            "told": f"{_where(point, varied)}\n{brief_text(point.throughput or 0.0)} {unit}",
        }
        for point in shown
    ]
    option: Option = {
        "legend": {"show": False},
        "tooltip": tooltip("told"),
        "parallel": {"left": 60, "right": 80, "top": 52, "bottom": 20},
        "parallelAxis": [*_axes(ordered), _last_axis(len(ordered), unit)],
        "visualMap": {
            "show": False,
            "min": shown[-1].throughput,
            "max": shown[0].throughput,
            "dimension": len(ordered),
            "inRange": {"color": list(_SCALE[1:])},
        },
        "series": [
            {
                "type": "parallel",
                "name": "points",
                "lineStyle": {"width": 2, "opacity": 0.6},
                "data": lines,
            }
        ],
    }
    left_out = f" The best {MOST_LINES} are drawn." if len(points) > MOST_LINES else ""
    return Plot(
        "parallel",
        option_json(option),
        380,
        "What each setting does to the throughput",
        f"A line per point through its settings to its {unit}; the best is at "
        f"{_where(shown[0], varied)}. {_importance(varied, len(points))}{left_out}",
    )


def _axes(ordered: list[Setting]) -> list[Option]:
    """An axis per setting, its importance beside its name."""
    return [
        {
            "dim": place,
            "type": "category",
            "data": [_name(value) for value in one.values],
            "name": one.title
            + ("" if one.importance is None else f": {format_share(one.importance, 0)}"),
            "nameLocation": "end",
            "nameGap": 14,
        }
        for place, one in enumerate(ordered)
    ]


def _last_axis(place: int, unit: str) -> Option:
    return {
        "dim": place,
        "type": "value",
        "name": unit,
        "nameLocation": "end",
        "nameGap": 14,
        "axisLabel": {"formatter": "si"},
    }
