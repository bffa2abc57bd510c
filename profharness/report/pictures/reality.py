"""How busy the device looked against what really happened: GPU % beside the shares of what the
device can do that were used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from profharness.analysis.records import Figure, Summary
from profharness.report.pictures.options import GREY, READABLE, Option, option_json, tooltip
from profharness.report.plots import colors
from profharness.report.plots.base import Plot
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import on_cpu, point_names
from profharness.report.text.measured.counted import same_time

MOST_POINTS = 40
WHOLE_RUN = "the whole run"
"""How the source of a figure begins that was sampled from the run's begin to its end."""


@dataclass(frozen=True)
class Measure:
    """One way to say how busy a device is, called and coloured as `metric`: the metrics that tell
    it, the best first.
    """

    metric: str
    metrics: tuple[str, ...]

    @property
    def label(self) -> str:
        return names.title_of(self.metric)

    @property
    def color(self) -> str:
        return colors.MEASURES[self.metric]


MEASURES = (
    Measure(names.GPU_PERCENT, (names.GPU_PERCENT,)),
    Measure(names.BUSY, ("busy_bare", names.BUSY)),
    Measure(names.FILL, (names.FILL_BARE, names.FILL)),
    Measure(names.WAVE_FILL, (names.WAVE_FILL,)),
    Measure(names.BANDWIDTH_SHARE, (names.BANDWIDTH_SHARE,)),
    Measure(names.MEMORY_ACTIVITY, (names.MEMORY_ACTIVITY,)),
    Measure(names.POWER_SATURATION, (names.POWER_SATURATION,)),
    Measure(names.MFU, (names.MFU,)),
)


@dataclass(frozen=True)
class Share:
    """One measured share in per cent, with its interval where it has one, and where it came
    from.
    """

    value: float
    low: float | None
    high: float | None
    told: str


def shares(metrics: Mapping[str, Figure]) -> dict[str, Share]:
    """The shares that were measured, by the label of their measure, in the order of MEASURES."""
    found: dict[str, Share] = {}
    for measure in MEASURES:
        for name in measure.metrics:
            figure = metrics.get(name)
            if figure is not None and finite(figure.value) is not None:
                found[measure.label] = _share(name, figure)
                break
    return found


def percent_text(value: float) -> str:
    """Three digits, as many as a reader compares."""
    return f"{value:.3g}"


def _share(name: str, figure: Figure) -> Share:
    factor = 1.0 if figure.unit in ("%", "percent") else 100.0
    value, low, high = (
        None if finite(one) is None or one is None else round(one * factor, 3)
        for one in (figure.value, figure.low, figure.high)
    )
    ends = (
        "" if low is None or high is None else f" ({percent_text(low)} to {percent_text(high)} %)"
    )
    told = f"{names.title_of(name)}: {percent_text(value or 0.0)} %{ends}"
    if figure.source:
        told += f"\nfrom {figure.source}"
    return Share(value or 0.0, low, high, told)


def reality_plot(summary: Summary) -> Plot | None:
    """What the driver calls busy against what was used, of each point or of the whole window; None
    where fewer than two such figures were measured.
    """
    if on_cpu(summary):
        return None
    rows = _rows(summary)
    if max((len(found) for _, found in rows), default=0) < 2:
        return None
    option = _bars(rows[0][1]) if len(rows) == 1 else _dots(rows)
    label, found = max(rows, key=lambda row: len(row[1]))
    said = ", ".join(f"{name} {percent_text(share.value)} %" for name, share in found.items())
    return Plot(
        "reality",
        option_json(option),
        90 + (30 * len(rows[0][1]) if len(rows) == 1 else 40 + 24 * len(rows)),
        "Busy, and what that was worth",
        "What the driver calls busy against the shares of what the device can do"
        f"{f', at {label}' if label else ''}: {said}.",
    )


def _rows(summary: Summary) -> list[tuple[str, dict[str, Share]]]:
    """The rows of the picture, by name: points with measured shares, else the whole window."""
    points = summary.points[:MOST_POINTS]
    labels = point_names(summary, points)
    rows = [
        (label, found)
        for label, point in zip(labels, points, strict=True)
        if (found := shares(point.metrics))
    ]
    whole = shares(_of_one_time(summary))
    if not any(len(found) > 1 for _, found in rows) and whole:
        return [("", whole)]
    return rows


def _of_one_time(summary: Summary) -> dict[str, Figure]:
    """The figures of the whole window, without those that were sampled over another time than its
    shares are of; as they were in the window, where samples tell that.
    """
    found = {}
    for name, figure in summary.metrics.items():
        factor = same_time(summary, name) if figure.source.startswith(WHOLE_RUN) else 1.0
        if factor == 1 or figure.value is None:
            found[name] = figure
        elif factor is not None:
            value = factor * figure.value
            found[name] = msgspec.structs.replace(figure, value=value, low=None, high=None)
    return found


def _axis() -> Option:
    return {
        "type": "value",
        "min": 0,
        "max": 100,
        "name": "share of what the device can do (%)",
    }


def _bars(found: dict[str, Share]) -> Option:
    """A bar per measure."""
    of_measure = {measure.label: measure.color for measure in MEASURES}
    bars = [
        {
            "value": share.value,
            "itemStyle": {"color": of_measure[label]},
            "told": share.told,
        }
        for label, share in found.items()
    ]
    whiskers = [
        [row, share.low, share.high]
        for row, share in enumerate(found.values())
        if share.low is not None and share.high is not None and share.low < share.high
    ]
    return {
        "grid": {"right": 64},
        "tooltip": tooltip("told"),
        "xAxis": _axis(),
        "yAxis": {"type": "category", "inverse": True, "data": list(found)},
        "series": [
            {
                "type": "bar",
                "data": bars,
                "barMaxWidth": 18,
                "label": {
                    "show": True,
                    "position": "right",
                    "distance": 16,
                    "formatter": "share",
                    **READABLE,
                },
            },
            *_whiskers(whiskers, colors.BOUND),
        ],
    }


def _dots(rows: list[tuple[str, dict[str, Share]]]) -> Option:
    """A row per point, a mark per measure, and a line between the least and the most."""
    series: list[Option] = []
    spans = [
        [row, min(values), max(values), 1]
        for row, (_, found) in enumerate(rows)
        if len(values := [share.value for share in found.values()]) > 1
    ]
    series += _whiskers(spans, GREY)
    for measure in MEASURES:
        data = [
            {"value": [found[measure.label].value, row], "told": found[measure.label].told}
            for row, (_, found) in enumerate(rows)
            if measure.label in found
        ]
        if not data:
            continue
        whiskers = [
            [row, share.low, share.high]
            for row, (_, found) in enumerate(rows)
            if (share := found.get(measure.label)) is not None
            and share.low is not None
            and share.high is not None
            and share.low < share.high
        ]
        series += _whiskers(whiskers, measure.color)
        look = {"color": measure.color}
        series.append(
            {
                "type": "scatter",
                "name": measure.label,
                "symbol": "diamond" if measure.metric == names.GPU_PERCENT else "circle",
                "symbolSize": 11,
                "itemStyle": look,
                "data": data,
            }
        )
    drawn = [measure.label for measure in MEASURES if any(measure.label in f for _, f in rows)]
    return {
        "legend": {"data": drawn},
        "tooltip": tooltip("told"),
        "xAxis": _axis(),
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": [label for label, _ in rows],
            "axisLabel": {"width": 220, "overflow": "truncate", "interval": 0},
            "splitLine": {"show": False},
        },
        "series": series,
    }


def _whiskers(data: list[list[float]], color: str) -> list[Option]:
    if not data:
        return []
    return [
        {
            "type": "custom",
            "renderItem": "interval_across",
            "itemStyle": {"color": color},
            "encode": {"x": [1, 2], "y": 0},
            "silent": True,
            "animation": False,
            "data": data,
        }
    ]
