"""Curves along each axis of numbers, at each setting of the other axes that was measured at two
values at least; the ones through the best point first (docs/metrics.md#axes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from profharness.analysis.axes.points import RatedPoints
from profharness.analysis.axes.records import AxisCurve, AxisLevels, Parameters, PointRate
from profharness.analysis.curves.fit import Measured
from profharness.analysis.curves.fitted import analyse, fall_finding
from profharness.analysis.curves.records import Knee
from profharness.analysis.curves.saturation import recommend
from profharness.analysis.verdict.records import Verdict
from profharness.stats.bootstrap import Z95

_FEWEST = 4
_MOST_FITTED = 16
"""Curves that are fitted: of more, the others have the knee of their points."""


def curves_of(
    rated: RatedPoints, best: PointRate, verdicts: Mapping[str, Verdict]
) -> tuple[AxisCurve, ...]:
    """Of each axis first the curve through the best point; first of all, that of the axis on which
    most values were measured there. `verdicts` are those on the points.
    """
    through: list[AxisCurve] = []
    others: list[AxisCurve] = []
    for axis in rated.axes:
        if not axis.is_number:
            continue
        for key, points in _groups(rated, axis):
            curve = _curve(axis, key, points, verdicts)
            (through if best in points else others).append(curve)
    through.sort(key=lambda curve: -len(curve.levels))
    ordered = (*through, *others)
    return tuple(_fitted(curve) if at < _MOST_FITTED else curve for at, curve in enumerate(ordered))


def _groups(rated: RatedPoints, axis: AxisLevels) -> list[tuple[Parameters, list[PointRate]]]:
    """The points along the axis by the values of the other axes, each in ascending order."""
    groups: dict[tuple[object, ...], list[PointRate]] = {}
    for point in rated.points:
        others = tuple(value for name, value in point.parameters.items() if name != axis.name)
        groups.setdefault(others, []).append(point)
    found = []
    for points in groups.values():
        if len(points) < 2:
            continue
        points.sort(key=lambda point: float(point.parameters[axis.name]))
        key = {name: value for name, value in points[0].parameters.items() if name != axis.name}
        found.append((key, points))
    return found


def _curve(
    axis: AxisLevels, key: Parameters, points: Sequence[PointRate], verdicts: Mapping[str, Verdict]
) -> AxisCurve:
    level = np.array([float(point.parameters[axis.name]) for point in points])
    rate = np.array([point.throughput for point in points])
    kept = np.array([point.kept for point in points])
    allowed = kept if kept.any() else np.ones_like(kept)
    recommended = recommend(level[allowed], rate[allowed])
    at = int(np.flatnonzero(level == recommended.at)[0])
    judged = [place for place, point in enumerate(points) if point.point in verdicts]
    nearest = min(judged, key=lambda place: abs(place - at), default=None)
    return AxisCurve(
        key=key,
        axis=axis.name,
        levels=tuple(level.tolist()),
        throughput=tuple(rate.tolist()),
        throughput_sem=tuple(_sem(point) for point in points),
        points=tuple(point.point for point in points),
        knee=Knee(n=recommended.at),
        recommended=recommended,
        limiter="" if nearest is None else verdicts[points[nearest].point].kind,
        limiter_text="" if nearest is None else verdicts[points[nearest].point].text,
        limiter_at=None if nearest is None else float(level[nearest]),
    )


def _sem(point: PointRate) -> float | None:
    """The standard error that belongs to the point's interval."""
    if point.low is None or point.high is None:
        return None
    return (point.high - point.low) / (2 * Z95)


def _fitted(curve: AxisCurve) -> AxisCurve:
    """With the corner of its asymptotes as its knee, where a curve fits its values above 0."""
    level, rate = np.array(curve.levels), np.array(curve.throughput)
    error = np.array([sem or 0.0 for sem in curve.throughput_sem]) / rate
    above = level > 0
    if above.sum() < _FEWEST:
        return curve
    measured = Measured(level[above], rate[above], error[above])
    seed = "|".join((curve.axis, *map(str, curve.key.values())))
    step, fitted = analyse(measured, "batch_size", seed, {})
    findings = (*fall_finding(measured, None), *fitted.findings)
    holds = fitted.batch is not None and not any(
        item.id in ("poor-fit", "falls-after-peak") for item in findings
    )
    inside = fitted.knee.n is not None and level[0] <= fitted.knee.n <= level[-1]
    return replace(
        curve,
        batch=fitted.batch if holds else None,
        knee=fitted.knee if holds and inside else curve.knee,
        step=step,
        findings=tuple(replace(item, advice="") for item in findings if item.id != "poor-fit"),
    )
