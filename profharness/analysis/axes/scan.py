"""A scan over axes as one record: best and recommended point, effects, curves
(docs/metrics.md#axes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from profharness.analysis.axes.curves import curves_of
from profharness.analysis.axes.effects import Effects, effects_of
from profharness.analysis.axes.expected import model_of
from profharness.analysis.axes.noise import unproven
from profharness.analysis.axes.points import RatedPoints
from profharness.analysis.axes.records import AxesScan, Parameters, PointRate, Prediction
from profharness.analysis.axes.serving import serve_line
from profharness.analysis.verdict.records import Verdict
from profharness.rundir.manifest import Manifest
from profharness.stats.chosen import Rated, chosen_points, scatter, smoothed_rates

MOST_EXPECTED = 200
"""Settings without a rate of which is told what is expected: of more, the fastest."""


def axes_scan(
    manifest: Manifest, rated: RatedPoints | None, verdicts: Mapping[str, Verdict]
) -> AxesScan | None:
    """None for a run that is no scan over axes; `verdicts` are those on the points, by name."""
    if rated is None or manifest.scan is None:
        return None
    settings = manifest.scan.settings
    repeats = settings.get("repeats", 1)
    made = AxesScan(
        axes=rated.axes,
        unit=rated.unit,
        design="search" if rated.searched else str(settings.get("design", "grid")),
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
    kept = _kept(rated)
    if rated.searched:  # the winner was measured again, so that no lucky level wins
        kept = [point for point in kept if point.executions > 1] or kept
    best, recommended = _chosen(rated, kept)
    return replace(
        _with_expected(made, rated),
        best=best.point if best.kept else None,
        recommended=recommended.point if recommended.kept else None,
        overlaps_best=_not_proven_worse(rated, best, _kept(rated)),
        effects=effects.effects,
        effects_need=_needs(effects, rated),
        curves=curves_of(rated, best, verdicts),
        serve=serve_line(settings, recommended.parameters)
        if recommended.kept and not manifest.command
        else "",
    )


def _kept(rated: RatedPoints) -> list[PointRate]:
    """The points that keep what is required; all of them where none does."""
    return [point for point in rated.points if point.kept] or list(rated.points)


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
        more = "a search by more levels" if rated.searched else "--repeats 3"
        return f"intervals need repeats: {more}"
    return ""


def _chosen(rated: RatedPoints, kept: list[PointRate]) -> tuple[PointRate, PointRate]:
    by_name = {point.point: point for point in kept}
    levels = [
        tuple(map(str, axis.values)) if axis.is_number else ("category",) for axis in rated.axes
    ]
    rates = _smoothed(rated) if rated.searched else {}
    rows = [
        Rated(point.point, _setting(rated, point), rates.get(point.point, point.throughput))
        for point in kept
    ]
    best, recommended = chosen_points(rows, levels)
    return by_name[best.name], by_name[recommended.name]


def _setting(rated: RatedPoints, point: PointRate) -> tuple[str, ...]:
    return tuple(str(point.parameters[axis.name]) for axis in rated.axes)


def _smoothed(rated: RatedPoints) -> dict[str, float]:
    """The rates of a search's points as all of them tell them, since most were measured once."""
    means = rated.means
    one = scatter((means.sigma or 0.0) ** 2 * means.freedom, means.freedom)
    rates = smoothed_rates(
        [_setting(rated, point) for point in rated.points],
        [tuple(map(str, axis.values)) for axis in rated.axes],
        means.mean.tolist(),
        [one / math.sqrt(count) for count in means.count.tolist()],
    )
    return {point.point: rate for point, rate in zip(rated.points, rates, strict=True)}


def _not_proven_worse(
    rated: RatedPoints, best: PointRate, kept: list[PointRate]
) -> tuple[str, ...]:
    places = {point.point: at for at, point in enumerate(rated.points)}
    others = [places[point.point] for point in kept if point is not best]
    found = unproven(rated.means, places[best.point], others)
    return tuple(rated.points[at].point for at in found)
