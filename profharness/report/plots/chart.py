"""A chart as an ECharts option: its series, its scales, and what stands under the pointer.

The option is plain JSON (https://echarts.apache.org/en/option.html). What needs a function is named
by a text that the page's script resolves: `formatter` and `renderItem`. Colours of text, axes and
grid are the page's business, since they follow light, dark and print; series carry their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from profharness.rundir.shown.screen import visible

Dash = Literal["solid", "dashed", "dotted"]
Ends = tuple[float, float] | None
Option = dict[str, Any]
"""A part of an option, which is JSON by nature: made here and nowhere looked into."""


@dataclass(frozen=True)
class Curve:
    """Points that a line joins, or marks alone where `width` is 0.

    `tip` is the text under the pointer, in which `{x}`, `{y}`, `{name}` and `{note}` stand for what
    they say; `{y:.1f}` has a decimal, `{y:4}` four significant digits. Without it the curve says
    nothing there. `notes` has one text per point, `ends` the ends of one interval per point (None
    where there is none), `sizes` one diameter in pixels per mark.
    """

    name: str
    color: str
    x: Sequence[float | str | None]
    y: Sequence[float | None]
    tip: str = ""
    notes: Sequence[str] = ()
    more: Sequence[tuple[float, float]] = ()
    ends: Sequence[Ends] = ()
    width: float = 2.0
    dash: Dash = "solid"
    symbol: str = "circle"
    size: float = 7.0
    sizes: Sequence[float] = ()
    hollow: bool = False
    opacity: float = 1.0
    in_legend: bool = True


@dataclass(frozen=True)
class Bars:
    """One slice of each stacked bar; texts as of a `Curve`, `{x}` is the bar's name."""

    name: str
    color: str
    lengths: Sequence[float]
    tip: str
    notes: Sequence[str] = ()
    in_legend: bool = True


@dataclass(frozen=True)
class Label:
    """A text at a point, its middle `dx` and `dy` pixels right of and below it, with a line to the
    mark of `radius` pixels; without `leader` it ends above the point.
    """

    x: float
    y: float
    text: str
    dx: float = 0.0
    dy: float = 0.0
    radius: float = 0.0
    leader: bool = True


@dataclass(frozen=True)
class Scale:
    """One axis. `names` make it one of categories, `ticks` are the only ones that have a label,
    written as `tick_format` says. `low` and `high` bound it; `zero` lets it begin at 0.
    """

    title: str
    log: bool = False
    category: bool = False
    names: Sequence[str] = ()
    ticks: Sequence[float] = ()
    tick_format: str = "number"
    tick_names: Sequence[str] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    zero: bool = False
    hidden: bool = False


def chart_json(
    series: Sequence[Curve | Bars],
    x: Scale,
    y: Scale,
    *,
    legend: bool = True,
    labels: Sequence[Label] = (),
    along: str = "",
) -> str:
    """The option of a chart as JSON. `along` is the text of one line under the pointer of a chart
    of many lines, which then tells of all of them at once.
    """
    horizontal = bool(y.category)
    option: Option = {
        "xAxis": _scale(x),
        "yAxis": _scale(y),
        "series": [part for one in series for part in _series(one, horizontal=horizontal)],
        "legend": {"data": _legend(series), "show": legend},
    }
    if along:
        option["tooltip"] = {"trigger": "axis", "formatter": f"along:{visible(along)}"}
    if labels:
        option["series"].append(_labels(labels))
    return json.dumps(option, separators=(",", ":"), allow_nan=False)


_DIAMOND = "path://M5 0L10 5L5 10L0 5Z"
"""An own shape: that of ECharts is stretched to the width of a line in a legend."""


def _legend(series: Sequence[Curve | Bars]) -> list[str | Option]:
    shown = {visible(one.name): one for one in series if one.in_legend and one.name}
    return [
        {"name": name, "icon": _DIAMOND}
        if isinstance(one, Curve) and one.symbol == "diamond" and not one.width
        else name
        for name, one in shown.items()
    ]


def _series(one: Curve | Bars, *, horizontal: bool) -> list[Option]:
    if isinstance(one, Bars):
        return [_bars(one, horizontal=horizontal)]
    return [_curve(one), *_intervals(one)]


def _said(tip: str, notes: Sequence[str]) -> tuple[Option, list[int]]:
    """What a series says under the pointer, and which of its words each point has."""
    if not tip:
        return {"tooltip": {"show": False}, "silent": True}, []
    words = list(dict.fromkeys(notes))
    at = {note: place for place, note in enumerate(words)}
    said: Option = {"tooltip": {"formatter": f"point:{visible(tip)}"}}
    if any(words):
        said["words"] = [visible(word) for word in words]
        return said, [at[note] for note in notes]
    return said, []


def _curve(one: Curve) -> Option:
    said, notes = _said(one.tip, one.notes)
    points: list[Any] = [
        [x, y if y is not None and math.isfinite(y) else None]  # JSON has no infinity
        for x, y in zip(_places(one.x), one.y, strict=True)
    ]
    for point, note in zip(points, notes, strict=False):
        point.append(note)
    for point, more in zip(points, one.more, strict=False):
        point.extend(more)
    if one.sizes:
        points = [
            {"value": point, "symbolSize": round(size, 2)}
            for point, size in zip(points, one.sizes, strict=True)
        ]
    drawn: Option = {
        "type": "line" if one.width else "scatter",
        "name": visible(one.name),
        "data": points,
        "symbol": ("empty" if one.hollow else "") + (one.symbol if one.size else "none"),
        "symbolSize": one.size,
        "symbolKeepAspect": True,
        "itemStyle": {"color": one.color, "opacity": one.opacity},
        **said,
    }
    if one.width:
        line = {"color": one.color, "width": one.width, "type": one.dash, "opacity": one.opacity}
        drawn |= {"lineStyle": line, "showSymbol": bool(one.size), "showAllSymbol": True}
    elif one.hollow:
        drawn["symbol"] = one.symbol
        drawn["itemStyle"] = {"color": "none", "borderColor": one.color, "borderWidth": 2}
    if one.symbol == "none" or not one.size:
        drawn["symbol"] = "none"
    return drawn


def _places(values: Sequence[float | str | None]) -> list[float | str | None]:
    return [
        visible(x) if isinstance(x, str) else x if x is not None and math.isfinite(x) else None
        for x in values
    ]


def _intervals(one: Curve) -> list[Option]:
    data = [
        [visible(x) if isinstance(x, str) else x, *ends]
        for x, ends in zip(one.x, one.ends, strict=False)
        if ends is not None and x is not None
    ]
    if not data:
        return []
    interval = {
        "type": "custom",
        "name": visible(one.name),
        "renderItem": "interval",
        "data": data,
        "encode": {"x": 0, "y": [1, 2]},
        "itemStyle": {"color": one.color},
        "tooltip": {"show": False},
        "silent": True,
    }
    return [interval]


def _bars(one: Bars, *, horizontal: bool) -> Option:
    said, notes = _said(one.tip, one.notes)
    points: list[list[float]] = [
        [length, place] if horizontal else [place, length]
        for place, length in enumerate(one.lengths)
    ]
    for point, note in zip(points, notes, strict=False):
        point.append(note)
    return {
        "type": "bar",
        "stack": "all",
        "name": visible(one.name),
        "data": points,
        "itemStyle": {"color": one.color},
        "barMaxWidth": 70,
        **said,
    }


def _labels(labels: Sequence[Label]) -> Option:
    return {
        "type": "custom",
        "name": "",
        "renderItem": "labels",
        "data": [
            [one.x, one.y, round(one.dx, 1), round(one.dy, 1), round(one.radius, 1), one.leader]
            for one in labels
        ],
        "encode": {"x": 0, "y": 1},
        "itemPayload": {
            "texts": [visible(one.text) for one in labels],
            "marks": [[one.x, one.y, round(one.radius, 1)] for one in labels if one.radius],
        },
        "tooltip": {"show": False},
        "silent": True,
        "z": 5,
    }


def _scale(scale: Scale) -> Option:
    kind = "category" if scale.category else "log" if scale.log else "value"
    label: Option = {"formatter": scale.tick_format}
    if scale.category:
        label = {}
    drawn: Option = {"type": kind, "name": visible(scale.title), "axisLabel": label}
    if scale.names:
        drawn["data"] = [visible(name) for name in scale.names]
    if scale.ticks:
        label["customValues"] = list(scale.ticks)
        drawn["axisTick"] = {"customValues": list(scale.ticks)}
        if scale.tick_names:
            label["formatter"] = "ticks"
            drawn["names"] = [visible(name) for name in scale.tick_names]
    if kind == "value":
        drawn["scale"] = not scale.zero
    for key, bound in (("min", scale.low), ("max", scale.high), ("interval", scale.step)):
        if bound is not None:
            drawn[key] = bound
    if scale.hidden:
        drawn["show"] = False
    return drawn
