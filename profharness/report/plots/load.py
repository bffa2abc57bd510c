"""Plots of a served scan: the parts of a request, stacked per level, and latency against the rate
of an open loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import Group, Plot, groups, log_scale, values
from profharness.report.plots.chart import Bars, Curve, Dash, Scale, chart_json
from profharness.report.plots.colors import REQUEST, curve_color
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.labels import AXIS_TITLES, Axis, load_text, scan_axis

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
    shown = [point for point in group.points if any(_part(point, name) for name in REQUEST)]
    if not shown:
        return None
    labels = [load_text(point, axis) if axis else point.point for point in shown]
    bars = []
    for name, color in REQUEST.items():
        heights = [_part(point, name) for point in shown]
        if any(heights):
            title = names.title_of(name).removeprefix(_PREFIX)
            bars.append(Bars(title, color, heights, f"{title}: {{y:4}} ms"))
    along = Scale(AXIS_TITLES[axis] if axis else "point", category=True, names=labels)
    return Plot(
        f"requests-{index}",
        chart_json(bars, along, Scale("mean request (ms)", zero=True)),
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
    curves = _open_curves(points)
    across = Scale("requests/s asked for", zero=True)
    up = log_scale("latency (ms, log scale)", [value for one in curves for value in one.y])
    return Plot(
        "open-loop",
        chart_json(curves, across, up),
        360,
        "Open loop",
        "Latency from the time that a request was meant to be sent, against the rate asked for.",
    )


def _open_curves(points: Sequence[PointSummary]) -> list[Curve]:
    """Median and 99th percentile of each backend and batch size."""
    curves = []
    keys = list(dict.fromkeys((point.backend, point.batch_size) for point in points))
    apart = len({batch for _, batch in keys}) > 1
    dashes: tuple[tuple[str, Dash], ...] = (
        (names.LATENCY_P50, "solid"),
        (names.LATENCY_P99, "dashed"),
    )
    for index, (backend, batch) in enumerate(keys):
        members = sorted(
            (point for point in points if (point.backend, point.batch_size) == (backend, batch)),
            key=lambda point: point.rate or 0.0,
        )
        who = f"{backend}, batch {batch} " if len(keys) > 1 else ""
        for name, dash in dashes:
            latencies = values(members, name)
            if any(value is not None for value in latencies):
                curves.append(
                    Curve(
                        f"{who}{names.title_of(name).removeprefix('latency ')}",
                        curve_color(backend, index, alone=not apart),
                        [point.rate for point in members],
                        latencies,
                        tip="{name}\n{x} requests/s: {y:4} ms",
                        dash=dash,
                    )
                )
    return curves
