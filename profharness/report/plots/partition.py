"""Plots of how the time divides into disjoint parts: of each point of a scan, or of one whole
window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profharness.analysis.records import Partition, Summary
from profharness.report.plots.base import (
    LEGEND,
    Group,
    Plot,
    Trace,
    figure_json,
    groups,
)
from profharness.report.text.labels import AXIS_TITLES, Axis, scan_axis
from profharness.report.text.limits import IDLE_CAUSES
from profharness.units import format_ns


@dataclass(frozen=True)
class Part:
    """One slice of a partition's bar: its label, its colour, and the record's field that holds its
    ns.
    """

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


def partition_plots(summary: Summary) -> tuple[Plot, ...]:
    """Stacked bars of the disjoint parts: one bar per point and one plot per curve, or one bar for
    a whole window.
    """
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
        "Shares of each point's time: compute, exposed communication and copies, "
        "and idle by cause.",
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
        "Shares of the window's time: compute, exposed communication and copies, "
        "and idle by cause.",
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
