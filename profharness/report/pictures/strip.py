"""The window of each device over time, by what it did and why it was idle, with zoom."""

from __future__ import annotations

from profharness.analysis.pictures.records import KINDS, Pictures, Strip, Strips
from profharness.report.pictures.options import Option, option_json, tooltip, zoom
from profharness.report.plots.base import Plot
from profharness.report.plots.partition import PARTS
from profharness.units import format_share

_ROW, _FRAME = 34, 132


def strip_plot(pictures: Pictures | None) -> Plot | None:
    """One strip per device over the window; None where no device time was recorded."""
    if pictures is None or not pictures.strips.strips:
        return None
    strips, left_out = pictures.strips.strips, pictures.strips.left_out
    first, last = min(one.start_ns for one in strips), max(one.end_ns for one in strips)
    drawn = [
        series
        for place, kind in enumerate(KINDS)
        if (series := _series(strips, place, kind, first)) is not None
    ]
    option: Option = {
        "legend": {"data": [series["name"] for series in drawn]},
        "grid": {"bottom": 34},
        "tooltip": tooltip("strip"),
        "xAxis": {
            "type": "value",
            "min": 0,
            "max": last - first,
            "name": "time since "
            + ("each file's window began" if pictures.strips.own_clocks else "the window began"),
            "axisLabel": {"formatter": "ns", "hideOverlap": True, "showMaxLabel": False},
        },
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": [f"device {one.device}" for one in strips],
            "axisLabel": {"width": 150, "overflow": "truncate"},
            "splitLine": {"show": False},
        },
        "dataZoom": zoom(xAxisIndex=0, filterMode="weakFilter"),
        "series": drawn,
    }
    more = f"; {left_out} more devices are left out" if left_out else ""
    return Plot(
        "strip",
        option_json(option),
        _FRAME + _ROW * max(len(strips), 2),
        f"The window of each device over time{more}",
        f"What each device did over the window, and why it was idle: {_words(strips)}."
        f"{_notes(pictures.strips)}",
    )


def _notes(strips: Strips) -> str:
    """What a reader has to know of how the strips are drawn; each sentence begins with a space."""
    notes = ""
    if any(one.thinned for one in strips.strips):
        notes += (
            " Where pieces are too many to draw, bins of time show how much of each kind they hold."
        )
    if strips.own_clocks:
        notes += " Each file is on its own clock, which begins with its window."
    return notes


def _series(strips: tuple[Strip, ...], place: int, kind: str, first: int) -> Option | None:
    """All pieces of one kind: device, start, end, and from which to which share of the height."""
    data = [
        [row, at, at + width, *_height(width, before, ns)]
        for row, one in enumerate(strips)
        for at, width, before, ns in _pieces(one, place, first)
    ]
    if not data:
        return None
    part = next(one for one in PARTS if one.field == kind)
    return {
        "type": "custom",
        "name": part.label,
        "renderItem": "strip",
        "itemStyle": {"color": part.color},
        "encode": {"x": [1, 2], "y": 0},
        "animation": False,
        "data": data,
    }


def _pieces(one: Strip, place: int, first: int) -> list[tuple[int, int, int, int]]:
    shift = one.start_ns - first
    columns = zip(one.kind, one.at, one.width, one.before, one.ns, strict=True)
    return [
        (at + shift, width, before, ns) for kind, at, width, before, ns in columns if kind == place
    ]


def _height(width: int, before: int, ns: int) -> list[float]:
    return [] if ns == width else [round(before / width, 3), round((before + ns) / width, 3)]


def _words(strips: tuple[Strip, ...]) -> str:
    """The shares of all devices together, largest first."""
    whole = sum(one.window_ns for one in strips)
    totals: dict[str, int] = {}
    for one in strips:
        for kind, ns in one.totals().items():
            totals[kind] = totals.get(kind, 0) + ns
    labels = {part.field: part.label for part in PARTS}
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    shares = [f"{labels[kind]} {format_share(ns / whole)}" for kind, ns in ordered]
    return ", ".join(text for text in shares if not text.endswith(" 0.0 %"))
