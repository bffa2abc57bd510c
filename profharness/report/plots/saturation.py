"""Plots of how full the device or the CPU was at each level of a scan."""

from __future__ import annotations

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import (
    LEGEND,
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
from profharness.report.text.labels import Axis, allowed_cores, on_cpu, scan_axis

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
    """Per curve of the scan: what the driver calls busy against how much of the device really
    works.
    """
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
        "GPU % as the driver reports it against fill, bandwidth and power, "
        "all as shares of what the device can do.",
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
        "CPU cores that the process tree ran on against the level, "
        "under the cores that it may use.",
    )


def _to_percent(points: tuple[PointSummary, ...], name: str) -> float:
    units = {figure.unit for point in points if (figure := point.metrics.get(name)) is not None}
    return 1.0 if units & {"%", "percent"} else 100.0


def _percents(points: tuple[PointSummary, ...], name: str) -> list[float | None]:
    return values(points, name, _to_percent(points, name))
