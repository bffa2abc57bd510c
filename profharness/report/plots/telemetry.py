"""Plots of what was sampled beside a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.plots.base import SERIES_COLORS, Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.sampled import telemetry_scales, telemetry_title, told_apart

MOST_TELEMETRY = 8
MOST_LINES = 16
"""Of one plot: of more devices nobody tells one from another."""
_SAMPLES = 12_000
"""Of all plots together."""


def telemetry_plots(summary: Summary) -> tuple[Plot, ...]:
    """One line plot per metric, a line per device; eight metrics at most, none that stayed zero."""
    drawn: dict[str, list[TelemetryRow]] = {}
    for row in summary.telemetry:
        if any(finite(value) for value in row.values):
            drawn.setdefault(row.metric, []).append(row)
    chosen = list(drawn.items())[:MOST_TELEMETRY]
    lines = sum(min(len(rows), MOST_LINES) for _, rows in chosen)
    return tuple(
        _telemetry_plot(metric, rows, index, _SAMPLES // lines)
        for index, (metric, rows) in enumerate(chosen)
    )


def _telemetry_plot(metric: str, rows: list[TelemetryRow], index: int, samples: int) -> Plot:
    title, (factor, unit) = telemetry_title(rows[0]), telemetry_scales(rows)[metric]
    curves = []
    devices = told_apart([row.device or row.host for row in rows])
    for place, row in enumerate(rows[:MOST_LINES]):
        kept = np.array(thinned_samples(row.values, samples), np.intp)
        curves.append(
            Curve(
                devices[place],
                SERIES_COLORS[place % len(SERIES_COLORS)],
                np.round(np.array(row.at_s, np.float64)[kept], 3).tolist(),
                np.round(np.array(row.values, np.float64)[kept] * factor, 6).tolist(),
                tip=f"{{y:4}} {unit} at {{x:.1f}} s",
                width=1.4,
                size=0,
            )
        )
    at = Scale("time since the first sample (s)", zero=True)
    value = Scale(unit, zero=metric != "clock_mhz")
    meaning = names.meaning_of(metric)
    return Plot(
        f"telemetry-{index}",
        chart_json(curves, at, value, legend=len(rows) > 1, along=unit),
        220,
        title + (f", {MOST_LINES} of {len(rows)} devices" if len(rows) > MOST_LINES else ""),
        f"{title} in {unit} over the run{f': {meaning}' if meaning else ''}.",
    )


def thinned_samples(values: Sequence[float], most: int) -> list[int]:
    """Which of the samples are drawn: all, or the lowest and the highest of each of `most` / 2
    equal stretches, so that no peak is lost.
    """
    if len(values) <= most:
        return list(range(len(values)))
    stretch = -(-2 * len(values) // max(most, 2))
    kept: set[int] = set()
    for start in range(0, len(values), stretch):
        within = range(start, min(start + stretch, len(values)))
        known = [at for at in within if finite(values[at]) is not None]
        if known:
            kept |= {min(known, key=lambda at: values[at]), max(known, key=lambda at: values[at])}
        else:
            kept.add(start)
    return sorted(kept)
