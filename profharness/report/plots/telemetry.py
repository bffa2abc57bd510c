"""Plots of what was sampled beside a run."""

from __future__ import annotations

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.plots.base import (
    LEGEND,
    SERIES_COLORS,
    Plot,
    lines_json,
    look_of,
)
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
    drawn = [
        [None if finite(value) is None else round(value * factor, 6) for value in row.values]
        for row in rows
    ]
    looks = [
        look_of(
            SERIES_COLORS[place % len(SERIES_COLORS)],
            mode="lines",
            name=row.device,
            line={"color": SERIES_COLORS[place % len(SERIES_COLORS)], "width": 1.4},
            hovertemplate=f"%{{y:.4~g}} {unit} at %{{x:.1f}} s<extra>{row.device}</extra>",
        )
        for place, row in enumerate(rows)
    ]
    layout = {
        "showlegend": len(rows) > 1,
        "legend": LEGEND,
        "xaxis": {"title": {"text": "time since the first sample (s)"}},
        "yaxis": {
            "title": {"text": unit},
            "rangemode": "tozero" if metric != "clock_mhz" else "normal",
        },
    }
    caption = title if title.endswith(unit) else f"{title} ({unit})"
    meaning = names.meaning_of(metric)
    return Plot(
        f"telemetry-{index}",
        lines_json([*zip((row.at_s for row in rows), drawn, strict=True)], looks, layout),
        220,
        caption,
        f"{title} in {unit} over the run{f': {meaning}' if meaning else ''}.",
    )
