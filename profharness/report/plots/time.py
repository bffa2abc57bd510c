"""Plots of how the time is spent: saturation, the partition of each window, every trial, and telemetry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from profharness.analysis.records import Partition, PointSummary, Summary, TelemetryRow
from profharness.report.plots.base import (
    LEGEND,
    SERIES_COLORS,
    Group,
    Plot,
    Trace,
    error_bars,
    figure_json,
    groups,
    level,
    level_axis,
    scatter,
    sources,
    values,
)
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import AXIS_TITLES, Axis, on_cpu, point_name, scan_axis
from profharness.report.text.limits import IDLE_CAUSES
from profharness.units import format_ns

MOST_TRIALS = 400
MOST_TELEMETRY = 8


@dataclass(frozen=True)
class Part:
    """One slice of a partition's bar: its label, its colour, and the record's field that holds its ns."""

    label: str
    color: str
    field: str


PARTS = (
    Part("compute", "#0f8b8d", "compute_ns"),
    Part("communication, exposed", "#6d5bd0", "exposed_communication_ns"),
    Part("copies, exposed", "#2f74c0", "exposed_copy_ns"),
    Part("idle: host not ready", "#d9730d", "host_not_ready_ns"),
    Part("idle: launches", "#e0a526", "launch_in_progress_ns"),
    Part("idle: synchronisation", "#c2366b", "synchronisation_ns"),
    Part("idle: waiting on copies or events", "#8f6bb8", "waiting_copy_or_event_ns"),
    Part("idle: queued gaps", "#a1762b", "queued_gap_ns"),
    Part("idle: no host record", "#98a3ae", "no_host_record_ns"),
    Part("idle", "#98a3ae", "idle_ns"),
)
_SATURATION = (
    (names.GPU_PERCENT, "#98a3ae", "dash"),
    (names.BUSY, "#2f74c0", "dot"),
    ("busy_bare", "#2f74c0", "dot"),
    (names.FILL, "#0f8b8d", "solid"),
    (names.FILL_BARE, "#0f8b8d", "solid"),
    (names.WAVE_FILL, "#5b8c2a", "solid"),
    (names.BANDWIDTH_SHARE, "#6d5bd0", "solid"),
    (names.MEMORY_ACTIVITY, "#6d5bd0", "dashdot"),
    (names.MFU, "#c2366b", "solid"),
    (names.POWER_SATURATION, "#d9730d", "solid"),
    ("power_vs_gemm", "#a1762b", "dash"),
)


def saturation_plots(summary: Summary) -> tuple[Plot, ...]:
    """Per curve of the scan: what the driver calls busy against how much of the device really works."""
    axis = scan_axis(summary.points)
    build = _cores_plot if on_cpu(summary) else _saturation_plot
    plots = (build(summary, group, axis, index) for index, group in enumerate(groups(summary)))
    return tuple(plot for plot in plots if plot is not None)


def _saturation_plot(summary: Summary, group: Group, axis: Axis | None, index: int) -> Plot | None:
    traces: list[Trace] = []
    for name, color, dash in _SATURATION:
        shown = _percents(group.points, name)
        if any(value is not None for value in shown):
            title = names.title_of(name)
            traces.append(
                scatter(
                    [level(point, axis) for point in group.points],
                    shown,
                    color,
                    name=title,
                    line={"color": color, "width": 2, "dash": dash},
                    customdata=sources(group.points, name),
                    error_y=error_bars(
                        [point.metrics.get(name) for point in group.points],
                        _to_percent(group.points, name),
                    ),
                    hovertemplate=f"{title} %{{y:.1f}} % at %{{x}}%{{customdata}}<extra></extra>",
                )
            )
    if not traces or len(group.points) < 2:
        return None
    layout = {
        "xaxis": level_axis(axis, summary.points),
        "legend": LEGEND,
        "yaxis": {"title": {"text": "share (%)"}, "range": [0, 104], "dtick": 25},
    }
    return Plot(
        f"saturation-{index}",
        figure_json(traces, layout),
        360,
        group.name,
        "GPU % as the driver reports it against fill, bandwidth and power, all as shares of what the device can do.",
    )


def _cores_plot(summary: Summary, group: Group, axis: Axis | None, index: int) -> Plot | None:
    used = values(group.points, names.CORES_USED)
    if len(group.points) < 2 or all(value is None for value in used):
        return None
    x = [level(point, axis) for point in group.points]
    traces = [
        scatter(
            x,
            used,
            group.color,
            name="cores used",
            customdata=sources(group.points, names.CORES_USED),
            error_y=error_bars([point.metrics.get(names.CORES_USED) for point in group.points]),
            hovertemplate="%{y:.2f} cores at %{x}%{customdata}<extra></extra>",
        )
    ]
    allowed = allowed_cores(summary)
    if allowed is not None:
        traces.append(
            scatter(
                [x[0], x[-1]],
                [allowed, allowed],
                "#98a3ae",
                name="cores allowed",
                mode="lines",
                line={"color": "#98a3ae", "dash": "dash", "width": 2},
                hovertemplate="%{y} allowed<extra></extra>",
            )
        )
    layout = {
        "xaxis": level_axis(axis, summary.points),
        "legend": LEGEND,
        "yaxis": {"title": {"text": "CPU cores"}, "rangemode": "tozero"},
    }
    return Plot(
        f"saturation-{index}",
        figure_json(traces, layout),
        320,
        group.name,
        "CPU cores that the process tree ran on against the level, under the cores that it may use.",
    )


def allowed_cores(summary: Summary) -> float | None:
    """The cores that the run may use, from the window's figures or any point's."""
    tables = (summary.metrics, *(point.metrics for point in summary.points))
    return next(
        (
            finite(table[names.CORES_ALLOWED].value)
            for table in tables
            if names.CORES_ALLOWED in table
        ),
        None,
    )


def _to_percent(points: tuple[PointSummary, ...], name: str) -> float:
    units = {figure.unit for point in points if (figure := point.metrics.get(name)) is not None}
    return 1.0 if units & {"%", "percent"} else 100.0


def _percents(points: tuple[PointSummary, ...], name: str) -> list[float | None]:
    return values(points, name, _to_percent(points, name))


def partition_plots(summary: Summary) -> tuple[Plot, ...]:
    """Stacked bars of the disjoint parts: one bar per point and one plot per curve, or one bar for a whole window."""
    plots = [
        plot
        for index, group in enumerate(groups(summary))
        if (plot := _partition_plot(group, scan_axis(summary.points), index))
    ]
    if not plots and summary.partition is not None and summary.partition.window_ns > 0:
        plots.append(_window_plot(summary.partition))
    return tuple(plots)


def _partition_plot(group: Group, axis: Axis | None, index: int) -> Plot | None:
    shown = [
        (point, point.partition)
        for point in group.points
        if point.partition is not None and point.partition.window_ns > 0
    ]
    if not shown:
        return None
    labels = [
        str(getattr(point, axis)) if axis and getattr(point, axis) is not None else point.point
        for point, _ in shown
    ]
    traces = _bars([partition for _, partition in shown], labels, horizontal=False)
    layout = {
        "barmode": "stack",
        "legend": {**LEGEND, "traceorder": "normal"},
        "bargap": 0.22 if len(shown) > 5 else 0.6,
        "yaxis": {"title": {"text": "share of the time (%)"}, "range": [0, 100]},
        "xaxis": {"title": {"text": AXIS_TITLES[axis] if axis else "point"}, "type": "category"},
    }
    return Plot(
        f"partition-{index}",
        figure_json(traces, layout),
        380,
        group.name,
        "Shares of each point's time: compute, exposed communication and copies, and idle by cause.",
    )


def _window_plot(partition: Partition) -> Plot:
    layout = {
        "barmode": "stack",
        "legend": {**LEGEND, "traceorder": "normal"},
        "yaxis": {"visible": False},
        "bargap": 0.1,
        "xaxis": {"title": {"text": "share of the time (%)"}, "range": [0, 100]},
    }
    return Plot(
        "partition",
        figure_json(_bars([partition], ["window"], horizontal=True), layout),
        190,
        "",
        "Shares of the window's time: compute, exposed communication and copies, and idle by cause.",
    )


def _bars(partitions: list[Partition], labels: list[str], *, horizontal: bool) -> list[Trace]:
    import plotly.graph_objects as go

    traces = []
    for part in PARTS:
        times = [part_ns(partition, part) for partition in partitions]
        if not any(times):
            continue
        shares = [
            100 * ns / partition.window_ns for ns, partition in zip(times, partitions, strict=True)
        ]
        across: dict[str, Any] = (
            {"x": shares, "y": labels, "orientation": "h"}
            if horizontal
            else {"x": labels, "y": shares}
        )
        number = "%{x:.1f}" if horizontal else "%{y:.1f}"
        traces.append(
            go.Bar(
                name=part.label,
                marker={"color": part.color, "line": {"width": 0}},
                customdata=[format_ns(ns) for ns in times],
                **across,
                hovertemplate=f"{part.label}: {number} % (%{{customdata}})<extra></extra>",
            )
        )
    return traces


def part_ns(partition: Partition, part: Part) -> int:
    """The part's ns; idle as one part only where its causes are unknown."""
    causes = partition.idle_causes
    if part.field in IDLE_CAUSES:
        return 0 if causes is None else int(getattr(causes, part.field))
    return (
        0 if part.field == "idle_ns" and causes is not None else int(getattr(partition, part.field))
    )


def trials_plot(summary: Summary) -> Plot | None:
    """Every trial over its point's median, in order within a column per point: a warm-up that leaks rises at the left."""
    shown = [
        point for point in summary.points if sum(bool(finite(ms)) for ms in point.trials_ms) > 1
    ]
    if not shown:
        return None
    placed, axis = _placed(summary, shown), scan_axis(summary.points)
    traces = [_trial_trace(summary, placed, place) for place in range(len(placed))]
    step = -(-len(shown) // 24)
    ticks = [
        str(getattr(point, axis) if axis and getattr(point, axis) is not None else point.point)
        for point, _ in placed
    ]
    what = AXIS_TITLES[axis] if axis else "point"
    layout = {
        "showlegend": placed[0][1].name != "",
        "legend": LEGEND,
        "xaxis": {
            "tickvals": [place + 0.4 for place in range(len(shown))][::step],
            "ticktext": ticks[::step],
            "showgrid": False,
            "zeroline": False,
            "title": {"text": f"{what}, and the trials of each from left to right"},
            "range": [-0.2, len(shown)],
        },
        "yaxis": {"title": {"text": "trial time / median of its point"}},
    }
    return Plot(
        "trials",
        figure_json(traces, layout),
        320,
        "",
        "Time of every trial over the median of its point, trials in order from left to right within each point's column.",
    )


def _placed(summary: Summary, shown: list[PointSummary]) -> list[tuple[PointSummary, Group]]:
    return [(point, group) for group in groups(summary) for point in group.points if point in shown]


def _trial_trace(summary: Summary, placed: list[tuple[PointSummary, Group]], place: int) -> Trace:
    point, group = placed[place]
    kept = [(index, ms) for index, ms in enumerate(point.trials_ms) if finite(ms)]
    ranked = sorted(ms for _, ms in kept)
    median = (ranked[len(ranked) // 2] + ranked[(len(ranked) - 1) // 2]) / 2
    drawn = thinned_trials(kept, median)
    last = max(len(point.trials_ms) - 1, 1)
    return scatter(
        [round(place + 0.8 * index / last, 4) for index, _ in drawn],
        [round(ms / median, 5) for _, ms in drawn],
        group.color,
        mode="markers",
        marker={"color": group.color, "size": 4, "opacity": 0.65},
        name=group.name,
        legendgroup=group.name,
        showlegend=place == 0 or placed[place - 1][1].name != group.name,
        customdata=[[index, format_ns(ms * 1e6)] for index, ms in drawn],
        hovertemplate=f"{point_name(summary, point)}, trial %{{customdata[0]}}: %{{customdata[1]}} (%{{y:.3f}} of the median)"
        "<extra></extra>",
    )


def thinned_trials(trials: list[tuple[int, float]], median: float) -> list[tuple[int, float]]:
    """At most about MOST_TRIALS of them: the first twenty and the hundred farthest from the median always, others evenly."""
    if len(trials) <= MOST_TRIALS:
        return trials
    far = sorted(trials, key=lambda trial: -abs(trial[1] - median))[:100]
    even = trials[:: -(-len(trials) // (MOST_TRIALS - 120))]
    return sorted({*trials[:20], *far, *even})


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


def telemetry_title(row: TelemetryRow) -> str:
    """The metric's name without its unit suffix: `clock_mhz` reads `clock`, as the unit stands beside it."""
    suffix = re.sub(r"[^a-z]", "", row.unit.lower())
    return names.title_of(row.metric.removesuffix(f"_{suffix}") if suffix else row.metric)


def telemetry_scale(unit: str) -> tuple[float, str]:
    """The factor and unit in which people read a metric: bytes as GiB, shares as per cent."""
    return {"B": (2.0**-30, "GiB"), "share": (100.0, "%")}.get(unit, (1.0, unit))


def _telemetry_plot(metric: str, rows: list[TelemetryRow], index: int) -> Plot:
    title, (factor, unit) = telemetry_title(rows[0]), telemetry_scale(rows[0].unit)
    drawn = [
        [None if finite(value) is None else round(value * factor, 6) for value in row.values]
        for row in rows
    ]
    traces = [
        scatter(
            row.at_s,
            drawn[place],
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
        figure_json(traces, layout),
        220,
        caption,
        f"{title} in {unit} over the run{f': {meaning}' if meaning else ''}.",
    )
