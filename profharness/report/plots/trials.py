"""The plot of every trial of a scan."""

from __future__ import annotations

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import (
    LEGEND,
    Group,
    Plot,
    Trace,
    figure_json,
    groups,
    scatter,
)
from profharness.report.text.figures import finite
from profharness.report.text.labels import AXIS_TITLES, point_names, scan_axis
from profharness.units import format_ns

MOST_TRIALS = 400


def trials_plot(summary: Summary) -> Plot | None:
    """Every trial over its point's median, in order within a column per point.

    A warm-up that leaks rises at the left of its column.
    """
    shown = [
        point for point in summary.points if sum(bool(finite(ms)) for ms in point.trials_ms) > 1
    ]
    if not shown:
        return None
    placed, axis = _placed(summary, shown), scan_axis(summary.points)
    called = point_names(summary, [point for point, _ in placed])
    traces = [_trial_trace(name, placed, place) for place, name in enumerate(called)]
    step = -(-len(shown) // 24)
    ticks = [
        str(getattr(point, axis) if axis and getattr(point, axis) is not None else point.point)
        for point, _ in placed
    ]
    axis_title = AXIS_TITLES[axis] if axis else "point"
    layout = {
        "showlegend": placed[0][1].name != "",
        "legend": LEGEND,
        "xaxis": {
            "tickvals": [place + 0.4 for place in range(len(shown))][::step],
            "ticktext": ticks[::step],
            "showgrid": False,
            "zeroline": False,
            "title": {"text": f"{axis_title}, and the trials of each from left to right"},
            "range": [-0.2, len(shown)],
        },
        "yaxis": {"title": {"text": "trial time / median of its point"}},
    }
    return Plot(
        "trials",
        figure_json(traces, layout),
        320,
        "",
        "Time of every trial over the median of its point, trials in order from left to right "
        "within each point's column.",
    )


def _placed(summary: Summary, shown: list[PointSummary]) -> list[tuple[PointSummary, Group]]:
    wanted = {id(point) for point in shown}  # they are the summary's own
    return [
        (point, group) for group in groups(summary) for point in group.points if id(point) in wanted
    ]


def _trial_trace(name: str, placed: list[tuple[PointSummary, Group]], place: int) -> Trace:
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
        hovertemplate=f"{name}, trial %{{customdata[0]}}: "
        "%{customdata[1]} (%{y:.3f} of the median)<extra></extra>",
    )


def thinned_trials(trials: list[tuple[int, float]], median: float) -> list[tuple[int, float]]:
    """At most about MOST_TRIALS of them.

    The first twenty and the hundred farthest from the median always stay, of the others every n-th.
    """
    if len(trials) <= MOST_TRIALS:
        return trials
    far = sorted(trials, key=lambda trial: -abs(trial[1] - median))[:100]
    even = trials[:: -(-len(trials) // (MOST_TRIALS - 120))]
    return sorted({*trials[:20], *far, *even})
