"""Power and clock of the devices over the run, with the passes and points, and the cap."""

from __future__ import annotations

from profharness.analysis.pictures.records import Band, Pictures
from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.pictures.options import GREY, Option, option_json, tooltip, zoom
from profharness.report.plots.base import Plot
from profharness.report.plots.colors import BOUND, CURVES
from profharness.report.text.figures import finite
from profharness.report.text.sampled import told_apart
from profharness.units import format_number

_POWER = ("power_w", "power_average", "power_energy")
_CLOCK, _CAP = "clock_mhz", "power_limit"
DRAWN = frozenset({*_POWER[:1], _CLOCK, _CAP})
"""Metrics that need no plot of their own."""
MOST_DEVICES = 8
MOST_BANDS = 60


def power_plots(summary: Summary, pictures: Pictures | None) -> tuple[Plot, ...]:
    """Power under its cap, and the clock, each on the run's time; those that were sampled."""
    rows: dict[str, list[TelemetryRow]] = {}
    for row in summary.telemetry:
        if row.device and any(finite(value) for value in row.values):
            rows.setdefault(row.metric, []).append(row)
    power = next((rows[name] for name in _POWER if name in rows), [])[:MOST_DEVICES]
    clock = rows.get(_CLOCK, [])[:MOST_DEVICES]
    bands = _chosen(() if pictures is None else pictures.bands)
    return tuple(
        _plot(what, of_devices, caps, bands)
        for what, of_devices, caps in (
            ("power", power, rows.get(_CAP, [])),
            ("clock", clock, []),
        )
        if of_devices
    )


def _plot(what: str, rows: list[TelemetryRow], caps: list[TelemetryRow], bands: list[Band]) -> Plot:
    unit = rows[0].unit
    cap = f", under a cap of {format_number(caps[0].mean)} {unit}" if caps else ""
    while_ran = f" while {'points' if bands[0].point else 'passes'} ran" if bands else ""
    return Plot(
        what,
        option_json(_option(f"{what} ({unit})", rows, caps, bands)),
        300,
        f"{what.capitalize()} of the devices over the run",
        f"The {what} of the devices over the run{while_ran}: {_ends(rows)} {unit}{cap}.",
    )


def _ends(rows: list[TelemetryRow]) -> str:
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    return f"{format_number(low)} to {format_number(high)}"


def _chosen(bands: tuple[Band, ...]) -> list[Band]:
    """The points where they are few enough to be told apart, else the passes."""
    points = [band for band in bands if band.point]
    passes = [band for band in bands if not band.point]
    return points if 0 < len(points) <= MOST_BANDS else passes[:MOST_BANDS]


def _option(
    title: str, rows: list[TelemetryRow], caps: list[TelemetryRow], bands: list[Band]
) -> Option:
    devices = told_apart([row.device for row in rows])
    series = [_line(row, number, devices[number]) for number, row in enumerate(rows)]
    if bands:
        series[0]["markArea"] = _areas(bands)
    series += [_cap(row) for row in caps[:1]]
    names = [one["name"] for one in series]
    return {
        "legend": {"data": names, "show": len(names) > 1},
        "grid": {"bottom": 34},
        "tooltip": tooltip(f"along:{rows[0].unit}", trigger="axis"),
        "xAxis": {
            "type": "value",
            "min": 0,
            "max": "dataMax",
            "name": "time since the first sample (s)",
            "axisLabel": {"formatter": "number"},
        },
        "yAxis": {
            "type": "value",
            "scale": not title.startswith("power"),
            "name": title,
            "nameGap": 44,
            "axisLabel": {"formatter": "number"},
        },
        "dataZoom": zoom(xAxisIndex=0, filterMode="none"),
        "series": series,
    }


def _line(row: TelemetryRow, number: int, device: str) -> Option:
    color = CURVES[number % len(CURVES)]
    return {
        "type": "line",
        "name": f"device {device}",
        "showSymbol": False,
        "itemStyle": {"color": color},
        "lineStyle": {"color": color, "width": 1.4},
        "data": [
            [round(at, 3), finite(value)] for at, value in zip(row.at_s, row.values, strict=True)
        ],
    }


def _cap(row: TelemetryRow) -> Option:
    return {
        "type": "line",
        "name": "power cap",
        "showSymbol": False,
        "step": "end",
        "itemStyle": {"color": BOUND},
        "lineStyle": {"color": BOUND, "width": 1.5, "type": "dashed"},
        "data": [
            [round(at, 3), finite(value)] for at, value in zip(row.at_s, row.values, strict=True)
        ],
    }


def _areas(bands: list[Band]) -> Option:
    """Bands, every other one a little darker, so that neighbours are told apart."""
    return {
        "silent": True,
        "label": {"position": "insideTop", "color": "inherit", "fontSize": 10},
        "data": [
            [
                {
                    "name": (band.point or band.pass_name) if len(bands) <= 16 else "",
                    "xAxis": round(band.start_s, 3),
                    "itemStyle": {"color": GREY, "opacity": 0.22 if place % 2 else 0.1},
                },
                {"xAxis": round(band.end_s, 3)},
            ]
            for place, band in enumerate(bands)
        ],
    }
