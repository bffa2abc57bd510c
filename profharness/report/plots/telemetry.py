"""Plots of what was sampled beside a run."""

from __future__ import annotations

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.plots.base import SERIES_COLORS, Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.sampled import telemetry_scale, telemetry_title

MOST_TELEMETRY = 8


def telemetry_plots(summary: Summary) -> tuple[Plot, ...]:
    """One line plot per metric, a line per device; eight metrics at most, none that stayed zero."""
    drawn: dict[str, list[TelemetryRow]] = {}
    for row in summary.telemetry:
        if any(finite(value) for value in row.values):
            drawn.setdefault(row.metric, []).append(row)
    chosen = list(drawn.items())[:MOST_TELEMETRY]
    return tuple(
        _telemetry_plot(metric, rows, index) for index, (metric, rows) in enumerate(chosen)
    )


def _telemetry_plot(metric: str, rows: list[TelemetryRow], index: int) -> Plot:
    title, (factor, unit) = telemetry_title(rows[0]), telemetry_scale(rows[0].unit)
    curves = [
        Curve(
            row.device,
            SERIES_COLORS[place % len(SERIES_COLORS)],
            row.at_s,
            [None if finite(value) is None else round(value * factor, 6) for value in row.values],
            tip=f"{{y:4}} {unit} at {{x:.1f}} s",
            width=1.4,
            size=0,
        )
        for place, row in enumerate(rows)
    ]
    at = Scale("time since the first sample (s)", zero=True)
    value = Scale(unit, zero=metric != "clock_mhz")
    caption = title if title.endswith(unit) else f"{title} ({unit})"
    meaning = names.meaning_of(metric)
    return Plot(
        f"telemetry-{index}",
        chart_json(curves, at, value, legend=len(rows) > 1, along=unit),
        220,
        caption,
        f"{title} in {unit} over the run{f': {meaning}' if meaning else ''}.",
    )
