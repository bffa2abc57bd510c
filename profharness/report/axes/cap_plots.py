"""Plots of a scan of power caps: energy along the cap, and maps over it and another axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.axes.records import AxesScan, CapCurve, Value
from profharness.report.axes.caps import energy_unit
from profharness.report.pictures.options import Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.plots.colors import CURVES
from profharness.report.text.figures import brief_text
from profharness.stats.estimate import Estimate

_MOST_LINES = 8
_MOST_LABELS = 120
_FEWEST = 4
_LOW_TO_HIGH = ("#dcebea", "#7dbdbb", "#0f8b8d", "#0a5557")


def cap_plots(scan: AxesScan) -> tuple[Plot, ...]:
    """Energy per item along the cap; and throughput and energy over the cap and one other axis."""
    plots = [_energy_plot(scan)]
    others = [axis for axis in scan.axes if scan.caps and axis.name in scan.caps[0].key]
    if len(others) == 1 and len(scan.caps) > 1:
        name = others[0].name
        plots += [
            _map(scan, name, "throughput", scan.unit, [_rate_of(curve) for curve in scan.caps]),
            _map(scan, name, "energy", energy_unit(scan), [_energy_of(one) for one in scan.caps]),
        ]
    return tuple(plot for plot in plots if plot is not None)


def _rate_of(curve: CapCurve) -> list[float | None]:
    return [point.throughput.value for point in curve.points]


def _energy_of(curve: CapCurve) -> list[float | None]:
    return [point.energy_per_item.value for point in curve.points]


def _energy_plot(scan: AxesScan) -> Plot | None:
    lines = []
    for at, curve in enumerate(scan.caps[:_MOST_LINES]):
        known = [point for point in curve.points if point.energy_per_item.value is not None]
        if known:
            lines.append(
                Curve(
                    setting_text(curve.key) or "measured",
                    CURVES[at % len(CURVES)],
                    [point.cap_w for point in known],
                    [point.energy_per_item.value for point in known],
                    tip=f"{{name}}\n{{x}} W: {{y:4}} {energy_unit(scan)}",
                    ends=[_ends(point.energy_per_item) for point in known],
                )
            )
    if not lines:
        return None
    left_out = len(scan.caps) - _MOST_LINES
    rest = f" {left_out} further settings are left out." if left_out > 0 else ""
    return Plot(
        "cap-energy",
        chart_json(
            lines,
            Scale("power cap (W)"),
            Scale(energy_unit(scan), zero=True, tick_format="si"),
        ),
        320,
        "Energy along the power cap",
        f"Energy per item at each power cap, with intervals from telemetry.{rest}",
    )


def _ends(estimate: Estimate) -> tuple[float, float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return max(estimate.low, 0.0), estimate.high


def _map(
    scan: AxesScan, axis: str, what: str, unit: str, values: Sequence[Sequence[float | None]]
) -> Plot | None:
    """A cell per cap and value of the axis; None with fewer than four."""
    caps = sorted({point.cap_w for curve in scan.caps for point in curve.points})
    levels = [curve.key[axis] for curve in scan.caps]
    order = [level for level in _levels_of(scan, axis) if level in levels]
    cells = [
        _Cell(caps.index(point.cap_w), order.index(curve.key[axis]), value)
        for curve, row in zip(scan.caps, values, strict=True)
        for point, value in zip(curve.points, row, strict=True)
        if value is not None
    ]
    if len(cells) < _FEWEST:
        return None
    across = [f"{brief_text(cap)} W" for cap in caps]
    up = [setting_text({axis: level}) for level in order]
    name = axis.removeprefix("env:")
    low, high = min(cell.value for cell in cells), max(cell.value for cell in cells)
    return Plot(
        f"cap-{what}-map",
        option_json(_heat_map(cells, across, up, unit)),
        110 + 34 * len(order),
        f"{what.capitalize()} by power cap and {name}",
        f"{unit} at each power cap and {name}, from {brief_text(low)} to {brief_text(high)}.",
    )


@dataclass(frozen=True)
class _Cell:
    """The places of the cap and of the other value, and what was measured there."""

    across: int
    up: int
    value: float


def _heat_map(cells: Sequence[_Cell], across: list[str], up: list[str], unit: str) -> Option:
    return {
        "legend": {"show": False},
        "tooltip": tooltip("told"),
        "xAxis": {"type": "category", "data": across, "name": "power cap"},
        "yAxis": {"type": "category", "data": up, "nameGap": 60},
        "visualMap": {
            "show": False,
            "min": min(cell.value for cell in cells),
            "max": max(cell.value for cell in cells),
            "dimension": 2,
            "inRange": {"color": list(_LOW_TO_HIGH)},
        },
        "series": [
            {
                "type": "heatmap",
                "name": unit,
                "label": {"show": len(cells) <= _MOST_LABELS, "formatter": "named"},
                "data": [
                    {
                        "value": [cell.across, cell.up, cell.value],
                        "name": brief_text(cell.value, 3),
                        "told": f"power cap {across[cell.across]}, {up[cell.up]}\n"
                        f"{brief_text(cell.value)} {unit}",
                    }
                    for cell in cells
                ],
            }
        ],
    }


def _levels_of(scan: AxesScan, axis: str) -> Sequence[Value]:
    return next((one.values for one in scan.axes if one.name == axis), ())
