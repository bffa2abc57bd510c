"""The roofline: how close each point comes to the ceilings of compute and bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import (
    LEGEND,
    Plot,
    Trace,
    figure_json,
    groups,
    log_ticks,
    scatter,
    sources,
    values,
)
from profharness.report.text import names
from profharness.report.text.figures import finite, quantity_text
from profharness.report.text.labels import point_names


def roofline_plot(summary: Summary) -> Plot | None:
    """Achieved FLOP/s against operational intensity, under the ceilings; None unless both were
    measured.
    """
    points = [
        point
        for point in summary.points
        if all(values([point], name)[0] for name in (names.INTENSITY, names.ACHIEVED_FLOPS))
    ]
    compute, copy = (
        summary.metrics.get(name) for name in (names.CEILING_FLOPS, names.CEILING_BANDWIDTH)
    )
    if (
        not points
        or compute is None
        or copy is None
        or not finite(compute.value)
        or not finite(copy.value)
    ):
        return None
    top, slope = float(compute.value or 0.0), float(copy.value or 0.0)
    intensities = [value for value in values(points, names.INTENSITY) if value is not None]
    low, high = min(*intensities, top / slope) / 4, max(*intensities, top / slope) * 4
    ceilings = scatter(
        [low, top / slope, high],
        [low * slope, top, top],
        "#7a8694",
        mode="lines",
        name="ceilings",
        hovertemplate=(
            f"{quantity_text(slope, 'B/s')}, {quantity_text(top, 'FLOP/s')}<br>from "
            f"{compute.source}<extra></extra>"
        ),
    )
    traces = [ceilings, *_roofline_points(summary, points)]
    layout = {
        "xaxis": {
            "title": {"text": "operational intensity (FLOP/B, log scale)"},
            **log_ticks([low, high]),
        },
        "legend": LEGEND,
        "yaxis": {
            "title": {"text": "log scale"},
            **log_ticks([*values(points, names.ACHIEVED_FLOPS), top], "FLOP/s"),
        },
    }
    return Plot(
        "roofline",
        figure_json(traces, layout),
        360,
        "",
        "Achieved FLOP/s of each point against its operational intensity, "
        "under the compute and bandwidth ceilings.",
    )


def _roofline_points(summary: Summary, points: Sequence[PointSummary]) -> Iterator[Trace]:
    """The points of each curve in its colour."""
    for group in groups(summary):
        shown = [point for point in group.points if point in points]
        if shown:
            yield scatter(
                values(shown, names.INTENSITY),
                values(shown, names.ACHIEVED_FLOPS),
                group.color,
                name=group.name or "points",
                mode="markers",
                text=list(point_names(summary, shown)),
                customdata=sources(shown, names.ACHIEVED_FLOPS),
                hovertemplate=(
                    "%{text}: %{y:.3s}FLOP/s at %{x:.3g} FLOP/B%{customdata}<extra></extra>"
                ),
            )
