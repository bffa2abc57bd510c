"""The roofline: how close each point comes to the ceilings of compute and bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import Plot, groups, log_scale, sources, values
from profharness.report.plots.chart import Curve, chart_json
from profharness.report.plots.colors import BOUND
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
    said = f"{quantity_text(slope, 'B/s')}, {quantity_text(top, 'FLOP/s')}"
    ceilings = Curve(
        "ceilings",
        BOUND,
        [low, top / slope, high],
        [low * slope, top, top],
        tip="{note}",
        notes=[f"{said}\nfrom {compute.source}"] * 3,
        size=4,
    )
    curves = [ceilings, *_roofline_points(summary, points)]
    across = log_scale("operational intensity (FLOP/B, log scale)", [low, high])
    shown = [*values(points, names.ACHIEVED_FLOPS), top, low * slope]
    up = log_scale("achieved FLOP/s (log scale)", shown, "FLOP/s")
    return Plot(
        "roofline",
        chart_json(curves, across, up),
        360,
        "",
        "Achieved FLOP/s of each point against its operational intensity, "
        "under the compute and bandwidth ceilings.",
    )


def _roofline_points(summary: Summary, points: Sequence[PointSummary]) -> Iterator[Curve]:
    """The points of each curve in its colour."""
    for group in groups(summary):
        shown = [point for point in group.points if point in points]
        if shown:
            notes = [
                f"{name}{source}"
                for name, source in zip(
                    point_names(summary, shown), sources(shown, names.ACHIEVED_FLOPS), strict=True
                )
            ]
            yield Curve(
                group.name or "points",
                group.color,
                values(shown, names.INTENSITY),
                values(shown, names.ACHIEVED_FLOPS),
                tip="{y:si}FLOP/s at {x:3} FLOP/B\n{note}",
                notes=notes,
                width=0,
            )
