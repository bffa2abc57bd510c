"""The report's plots as plotly figures: what is drawn, its units and error bars, and a sentence for
those who cannot see it.

Colours of text, grid and background are the page's business (they follow light and dark); only the
marks carry their own, chosen to keep a contrast of 3:1 against both.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.text.figures import finite, half_width, si_text
from profharness.report.text.labels import Axis, scan_axis, several_batches
from profharness.rundir.shown.screen import visible

Trace = Any  # plotly ships no types
SERIES_COLORS = (
    "#0f8b8d",
    "#d9730d",
    "#6d5bd0",
    "#c2366b",
    "#5b8c2a",
    "#2f74c0",
    "#a1762b",
    "#7a8694",
)

_FOREIGN_TAG = re.compile(r"<(?!br>|/?extra>)")


@dataclass(frozen=True)
class Plot:
    """A figure as JSON for the page's script, its height in pixels, its caption and a description
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
                color=SERIES_COLORS[index % len(SERIES_COLORS)],
            )
        )
    return tuple(group for group in curves if group.points)


def lines_json(
    lines: Sequence[tuple[Sequence[float], Sequence[float | None]]],
    looks: Sequence[dict[str, Any]],
    layout: dict[str, Any],
) -> str:
    """`figure_json` of lines that look like `scatter` with these settings, whose points plotly does
    not look through one by one: of hundreds of lines that takes long.
    """
    traces = [{"type": "scatter", "x": [0], "y": [0]} | look for look in looks]
    figure = json.loads(figure_json(traces, layout))
    for drawn, (x, y) in zip(figure["data"], lines, strict=True):
        drawn["x"], drawn["y"] = _finite(x), _finite(y)
    return json.dumps(figure, separators=(",", ":"))


def _finite(numbers: Sequence[float | None]) -> list[float | None]:
    """JSON has no word for what is not finite; plotly leaves it out as well."""
    return [one if one is not None and math.isfinite(one) else None for one in numbers]


def figure_json(traces: Sequence[Trace], layout: dict[str, Any]) -> str:
    """The figure checked by plotly and written as JSON; plotly's default template is left out, the
    page has its own.
    """
    import plotly.graph_objects as go

    figure = go.Figure(data=list(traces))
    figure.update_layout(template=None, margin={"l": 64, "r": 16, "t": 12, "b": 48}, **layout)
    text: str = figure.to_json()
    drawn = json.loads(text)
    shown = _shown(drawn)
    return text if shown == drawn else json.dumps(shown, separators=(",", ":"))


def _shown(part: Any) -> Any:
    """A part of a figure in which the tags of our own texts are the only ones: plotly draws others
    too, links among them.
    """
    if isinstance(part, dict):
        return {key: _shown(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_shown(value) for value in part]
    return visible(_FOREIGN_TAG.sub("&lt;", part)) if isinstance(part, str) else part


def scatter(x: Sequence[Any], y: Sequence[Any], color: str, **settings: Any) -> Trace:
    """A line with markers in one colour."""
    import plotly.graph_objects as go

    return go.Scatter(x=list(x), y=list(y), **look_of(color, **settings))


def look_of(color: str, **settings: Any) -> dict[str, Any]:
    """What `scatter` sets of a line besides its points."""
    look: dict[str, Any] = {
        "mode": "lines+markers",
        "line": {"color": color, "width": 2},
        "marker": {"color": color, "size": 7},
    }
    return look | settings


def level_axis(axis: Axis | None, points: Sequence[PointSummary]) -> dict[str, Any]:
    """A log axis whose ticks are the measured levels (thinned to eight), or point names where there
    are no levels.
    """
    if axis is None:
        return {"title": {"text": "point"}, "type": "category"}
    levels = sorted({getattr(point, axis) for point in points if point.state == "ok"} - {None})
    titles = {
        "batch_size": "batch size",
        "concurrency": "concurrency",
        "processes": "processes",
        "rate": "requests/s",
    }
    shown = levels[:: max(1, -(-len(levels) // 8))]
    return {
        "title": {"text": f"{titles[axis]} (log scale)"},
        "type": "log",
        "tickvals": shown,
        "ticktext": [f"{level:g}" for level in shown],
        "minor": {"showgrid": False},
    }


def log_ticks(shown: Sequence[float | None], unit: str = "") -> dict[str, Any]:
    """Ticks of a log axis at 1, 2 and 5 of each decade within the data (decades alone beyond four),
    with SI prefixes for `unit`.
    """
    positive = [value for value in shown if value is not None and value > 0]
    if not positive:
        return {}
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    steps = (1, 2, 5) if high - low <= 4 else (1,)
    ticks = [step * 10.0**power for power in range(low - 1, high + 1) for step in steps]
    inside = [tick for tick in ticks if min(positive) / 2 <= tick <= max(positive) * 2]
    text = [si_text(tick, unit) if unit else f"{tick:.10g}" for tick in inside]
    return {"type": "log", "tickvals": inside, "ticktext": text, "minor": {"showgrid": False}}


def level(point: PointSummary, axis: Axis | None) -> float | str:
    """The point's place on `level_axis`."""
    value = getattr(point, axis) if axis is not None else None
    return point.point if value is None else float(value)


def error_bars(figures: Sequence[Figure | None], factor: float = 1.0) -> dict[str, Any]:
    """Asymmetric bars to the ends of the figures' intervals, times `factor`; none where an interval
    is open.
    """
    up: list[float] = []
    down: list[float] = []
    for figure in figures:
        closed = (
            figure is not None
            and figure.value is not None
            and half_width(figure.value, figure.low, figure.high) is not None
        )
        if (
            closed
            and figure is not None
            and figure.value is not None
            and figure.low is not None
            and figure.high is not None
        ):
            up.append((figure.high - figure.value) * factor)
            down.append((figure.value - figure.low) * factor)
        else:
            up.append(0.0)
            down.append(0.0)
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "thickness": 1.2,
        "width": 3,
        "visible": any(up + down),
    }


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
        f"<br>from {figure.source}"
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


LEGEND = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
