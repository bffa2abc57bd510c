"""The plot of every trial of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import Group, Plot, groups, log_scale
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.text.figures import finite
from profharness.report.text.labels import AXIS_TITLES, point_names, scan_axis

MOST_TRIALS = 400
_WIDE = 5.0  # times the median, from which on the scale is a log scale
_MOST_MARKS, _FEWEST = 8_000, 4  # of all points together, and of one point in spite of that


@dataclass(frozen=True)
class _Trial:
    """One mark: its place, its time over the point's median, and whose trial it is."""

    x: float
    ratio: float
    point: str
    trial: int
    ms: float


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
    step = -(-len(shown) // 24)
    ticks = [
        str(getattr(point, axis) if axis and getattr(point, axis) is not None else point.point)
        for point, _ in placed
    ]
    axis_title = AXIS_TITLES[axis] if axis else "point"
    across = Scale(
        f"{axis_title}, and the trials of each from left to right",
        ticks=[place + 0.4 for place in range(len(shown))][::step],
        tick_names=ticks[::step],
        low=-0.2,
        high=float(len(shown)),
    )
    curves = _trial_curves(called, placed)
    up = _ratios([ratio for curve in curves for ratio in curve.y if ratio is not None])
    return Plot(
        "trials",
        chart_json(curves, across, up, legend=placed[0][1].name != ""),
        320,
        "",
        "Time of every trial over the median of its point, trials in order from left to right "
        "within each point's column.",
    )


def _ratios(shown: Sequence[float]) -> Scale:
    """The axis up: a log scale where an outlier would press all other trials onto the axis."""
    title = "trial time / median of its point"
    if max(shown) > _WIDE:
        return log_scale(f"{title} (log scale)", shown)
    return Scale(title)


def _placed(summary: Summary, shown: list[PointSummary]) -> list[tuple[PointSummary, Group]]:
    wanted = {id(point) for point in shown}  # they are the summary's own
    return [
        (point, group) for group in groups(summary) for point in group.points if id(point) in wanted
    ]


def _trial_curves(called: Sequence[str], placed: list[tuple[PointSummary, Group]]) -> list[Curve]:
    """The marks of each curve of the scan, all of its points together."""
    marks: dict[str, list[_Trial]] = {}
    colors = {}
    most = max(min(MOST_TRIALS, _MOST_MARKS // len(placed)), _FEWEST)
    for place, (name, (point, group)) in enumerate(zip(called, placed, strict=True)):
        colors[group.name] = group.color
        marks.setdefault(group.name, []).extend(_marks(name, point, place, most))
    return [
        Curve(
            group,
            colors[group],
            [mark.x for mark in trials],
            [mark.ratio for mark in trials],
            tip="{note}, trial {a}: {b:time} ({y:.3f} of the median)",
            notes=[mark.point for mark in trials],
            more=[(mark.trial, mark.ms) for mark in trials],
            width=0,
            size=4,
            opacity=0.65,
        )
        for group, trials in marks.items()
    ]


def _marks(name: str, point: PointSummary, place: int, most: int) -> list[_Trial]:
    """Where the point's trials stand: in its column, each over the point's median."""
    kept = [(index, ms) for index, ms in enumerate(point.trials_ms) if finite(ms)]
    ranked = sorted(ms for _, ms in kept)
    median = (ranked[len(ranked) // 2] + ranked[(len(ranked) - 1) // 2]) / 2
    last = max(len(point.trials_ms) - 1, 1)
    return [
        _Trial(
            round(place + 0.8 * index / last, 4), round(ms / median, 5), name, index, round(ms, 6)
        )
        for index, ms in thinned_trials(kept, median, most)
    ]


def thinned_trials(
    trials: list[tuple[int, float]], median: float, most: int = MOST_TRIALS
) -> list[tuple[int, float]]:
    """At most about `most` of them.

    The first ones (a twentieth of `most`) and those farthest from the median (a quarter) always
    stay, of the others every n-th.
    """
    if len(trials) <= most:
        return trials
    first, outer = max(most // 20, 1), max(most // 4, 1)
    far = sorted(trials, key=lambda trial: -abs(trial[1] - median))[:outer]
    even = trials[:: -(-len(trials) // max(most - first - outer, 1))]
    return sorted({*trials[:first], *far, *even})
