"""A scan of a command as one record: best and recommended point, effects, curves
(docs/metrics.md#axes).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from profharness.analysis.axes.curves import curves_of
from profharness.analysis.axes.effects import Effects, effects_of
from profharness.analysis.axes.expected import model_of
from profharness.analysis.axes.points import RatedPoints
from profharness.analysis.axes.records import AxesScan, Parameters, PointRate, Prediction
from profharness.analysis.verdict.records import Verdict
from profharness.rundir.manifest import Manifest
from profharness.stats.chosen import Rated, chosen_points

MOST_EXPECTED = 200
"""Settings without a rate of which is told what is expected: of more, the fastest."""


def axes_scan(
    manifest: Manifest, rated: RatedPoints | None, verdicts: Mapping[str, Verdict]
) -> AxesScan | None:
    """None for a run that is no scan of a command; `verdicts` are those on the
    points, by name.
    """
    if rated is None or manifest.scan is None:
        return None
    settings = manifest.scan.settings
    repeats = settings.get("repeats", 1)
    made = AxesScan(
        axes=rated.axes,
        unit=rated.unit,
        design=str(settings.get("design", "grid")),
        repeats=repeats if isinstance(repeats, int) else 1,
        requires=tuple(map(str, rated.requires)),
        points=rated.points,
        noise=rated.means.sigma,
        unmeasured=rated.unmeasured,
        effects_need="a point that was measured",
    )
    if not rated.points:
        return made
    effects = effects_of(rated.axes, rated.places, rated.means)
    kept = [point for point in rated.points if point.kept] or list(rated.points)
    best, recommended = _chosen(rated, kept)
    return replace(
        _with_expected(made, rated),
        best=best.point if best.kept else None,
        recommended=recommended.point if recommended.kept else None,
        overlaps_best=_overlapping(best, kept),
        effects=effects.effects,
        effects_need=_needs(effects, rated),
        curves=curves_of(rated, best, verdicts),
    )


def prediction(rated: RatedPoints, parameters: Parameters) -> Prediction | None:
    """What is expected of a point; None for a value outside of its axis, or too few points."""
    model = model_of(rated.axes, rated.places, rated.means)
    return None if model is None else model.at(parameters)


def _with_expected(made: AxesScan, rated: RatedPoints) -> AxesScan:
    """With what each point would be by the others, and what settings without a rate would be."""
    model = model_of(rated.axes, rated.places, rated.means)
    if model is None:
        return made
    found = model.of_grid((*map(tuple, rated.places.tolist()), *rated.failed_places))
    return replace(
        made,
        left_out=model.left_out(rated.points),
        left_out_error=model.left_out_error,
        expected=found[:MOST_EXPECTED],
        settings_left=len(found),
    )


def _needs(effects: Effects, rated: RatedPoints) -> str:
    """Why effects or their intervals are missing."""
    if effects.needs:
        return effects.needs
    if rated.means.sigma is None and any(one.factor.low is None for one in effects.effects):
        return "intervals need repeats: --repeats 3"
    return ""


def _chosen(rated: RatedPoints, kept: list[PointRate]) -> tuple[PointRate, PointRate]:
    by_name = {point.point: point for point in kept}
    levels = [
        tuple(map(str, axis.values)) if axis.is_number else ("category",) for axis in rated.axes
    ]
    rows = [
        Rated(
            point.point,
            tuple(str(point.parameters[axis.name]) for axis in rated.axes),
            point.throughput,
        )
        for point in kept
    ]
    best, recommended = chosen_points(rows, levels)
    return by_name[best.name], by_name[recommended.name]


def _overlapping(best: PointRate, kept: list[PointRate]) -> tuple[str, ...]:
    """The points whose interval reaches that of the best."""
    if best.low is None:
        return ()
    return tuple(
        point.point
        for point in kept
        if point is not best and point.high is not None and point.high >= best.low
    )
