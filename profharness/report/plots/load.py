"""Plots of a served scan: the parts of a request, stacked per level, and latency against the rate
of an open loop.
"""

from __future__ import annotations

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import (
    LEGEND,
    SERIES_COLORS,
    Group,
    Plot,
    figure_json,
    groups,
    log_ticks,
    scatter,
    values,
)
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import AXIS_TITLES, Axis, load_text, scan_axis

# in the order in which they happen; colours of neighbours differ in lightness too
PARTS = (
    ("part_transport_out", "#2f74c0"),
    ("part_before", "#5a93d1"),
    ("part_transport", "#2f74c0"),
    ("part_queue", "#d9730d"),
    ("part_input", "#a1762b"),
    ("part_hand_over", "#7a8694"),
    ("part_model", "#0f8b8d"),
    ("part_infer", "#0f8b8d"),
    ("part_output", "#c9a35b"),
    ("part_after", "#8db3e2"),
    ("part_transport_back", "#8db3e2"),
)
_PREFIX = "part of a request: "


def request_plots(summary: Summary) -> tuple[Plot, ...]:
    """Per curve the mean request's way through client, network, server and model; then open
    loops.
    """
    axis = scan_axis(summary.points)
    plots = [
        plot
        for index, group in enumerate(groups(summary))
        if (plot := _parts_plot(group, axis, index)) is not None
    ]
    opened = open_loop_plot(summary)
    return (*plots, opened) if opened is not None else tuple(plots)


def _parts_plot(group: Group, axis: Axis | None, index: int) -> Plot | None:
    import plotly.graph_objects as go

    shown = [point for point in group.points if any(_part(point, name) for name, _ in PARTS)]
    if not shown:
        return None
    labels = [load_text(point, axis) if axis else point.point for point in shown]
    traces = []
    for name, color in PARTS:
        heights = [_part(point, name) for point in shown]
        if any(heights):
            title = names.title_of(name).removeprefix(_PREFIX)
            traces.append(
                go.Bar(
                    name=title,
                    x=labels,
                    y=heights,
                    marker={"color": color, "line": {"width": 0}},
                    hovertemplate=f"{title}: %{{y:,.4~g}} ms<extra></extra>",
                )
            )
    layout = {
        "barmode": "stack",
        "legend": {**LEGEND, "traceorder": "normal"},
        "bargap": 0.22 if len(shown) > 5 else 0.6,
        "yaxis": {"title": {"text": "mean request (ms)"}},
        "xaxis": {"title": {"text": AXIS_TITLES[axis] if axis else "point"}, "type": "category"},
    }
    return Plot(
        f"requests-{index}",
        figure_json(traces, layout),
        360,
        " ".join(("Where a request's time goes", f"({group.name})" if group.name else "")).strip(),
        "Mean time of a request at each level, by part: transport, queue, copies, model.",
    )


def _part(point: PointSummary, name: str) -> float:
    figure = point.metrics.get(name)
    return (finite(figure.value) or 0.0) if figure is not None else 0.0


def open_loop_plot(summary: Summary) -> Plot | None:
    """Corrected latency against the rate that was asked for; None unless closed loops were measured
    too, whose plots show no rates.
    """
    points = [
        point
        for point in summary.points
        if point.rate is not None and finite(point.throughput) is not None
    ]
    if len(points) < 2 or scan_axis(summary.points) == "rate":
        return None
    traces = []
    curves = list(dict.fromkeys((point.backend, point.batch_size) for point in points))
    for index, (backend, batch) in enumerate(curves):
        curve_points = sorted(
            (point for point in points if (point.backend, point.batch_size) == (backend, batch)),
            key=lambda point: point.rate or 0.0,
        )
        who = f"{backend}, batch {batch} " if len(curves) > 1 else ""
        for name, dash in ((names.LATENCY_P50, "solid"), (names.LATENCY_P99, "dash")):
            if any(value is not None for value in values(curve_points, name)):
                color = SERIES_COLORS[index % len(SERIES_COLORS)]
                label = f"{who}{names.title_of(name).removeprefix('latency ')}"
                traces.append(
                    scatter(
                        [point.rate for point in curve_points],
                        values(curve_points, name),
                        color,
                        name=label,
                        line={"color": color, "dash": dash, "width": 2},
                        hovertemplate=f"%{{x}} requests/s: %{{y:,.4~g}} ms<extra>{label}</extra>",
                    )
                )
    layout = {
        "legend": LEGEND,
        "xaxis": {"title": {"text": "requests/s asked for"}, "rangemode": "tozero"},
        "yaxis": {
            "title": {"text": "latency (ms, log scale)"},
            **log_ticks([value for trace in traces for value in trace.y]),
        },
    }
    return Plot(
        "open-loop",
        figure_json(traces, layout),
        360,
        "Open loop",
        "Latency from the time that a request was meant to be sent, against the rate asked for.",
    )
