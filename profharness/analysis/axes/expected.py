"""What is expected of settings that were not measured: a Gaussian process over the grid, held to
the measured points, of which each is predicted from the others (docs/metrics.md#axes-expected).
Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.axes.noise import PointMeans
from profharness.analysis.axes.records import (
    AxisLevels,
    LeftOut,
    Parameters,
    PointRate,
    Prediction,
    Value,
)
from profharness.stats.bootstrap import student95
from profharness.stats.estimate import Estimate
from profharness.stats.surrogate import Grid, Measurements, left_out, posterior_at
from profharness.trace.model import F64, I64

_FEWEST = 3
_MOST_MEASURED = 400
"""Points that the process is held to: of more, every second, third and so on is taken."""
_NOISES = (0.005, 0.02, 0.05, 0.15, 0.4)
"""Of one execution, where the repeats do not tell: the likeliest one holds."""
_FEW_REPEATS = 3
_LEAST_NOISE = 1e-3
_MOST_LOG = 700.0


@dataclass(frozen=True, eq=False)
class Model:
    """The process, its error at each measured point that was left out (of the logarithm, and over
    the standard deviation that it had given), and by what its deviations are stretched.
    """

    axes: tuple[AxisLevels, ...]
    measured: Measurements
    kept: I64
    errors: F64
    deviations: F64

    @property
    def ratios(self) -> F64:
        """The errors in standard deviations."""
        return self.errors / self.deviations

    @property
    def left_out_error(self) -> float:
        """The median relative error of predicting a measured point from the others."""
        return float(np.median(np.abs(np.expm1(-self.errors))))

    def left_out(self, points: Sequence[PointRate]) -> tuple[LeftOut, ...]:
        """Each measured point as the others predict it; its own error has no part in its
        interval.
        """
        count, ratios = len(self.errors), self.ratios
        found = []
        for at, place in enumerate(self.kept.tolist()):
            others = np.delete(ratios, at)
            half = self.deviations[at] * _stretch(others) * student95(count - 1)
            mean = self.measured.values[at] - self.errors[at]
            found.append(
                LeftOut(
                    point=points[place].point,
                    throughput=_estimate(mean, half),
                    inside=bool(abs(self.errors[at]) <= half),
                )
            )
        return tuple(found)

    def at(self, parameters: Parameters) -> Prediction | None:
        """Of any point on the axes, also between two numbers; None outside of them."""
        places = [_position(axis, parameters[axis.name]) for axis in self.axes]
        if any(place is None for place in places):
            return None
        levels = np.array([[place or 0.0 for place in places]])
        (found,) = self._estimates(levels)
        return Prediction(parameters=parameters, throughput=found)

    def of_grid(self, known: Iterable[tuple[int, ...]]) -> tuple[Prediction, ...]:
        """Of all settings but those at the places `known`, the fastest first."""
        counts = [len(axis.values) for axis in self.axes]
        places = np.stack(np.unravel_index(np.arange(math.prod(counts)), counts), axis=1)
        taken = np.zeros(len(places), bool)
        for one in known:
            taken[int(np.ravel_multi_index(one, counts))] = True
        left = places[~taken]
        if not len(left):
            return ()
        found = self._estimates(left.astype(np.float64))
        order = np.argsort([-(one.value or 0.0) for one in found], kind="stable")
        return tuple(
            Prediction(
                parameters={
                    axis.name: axis.values[place]
                    for axis, place in zip(self.axes, left[at].tolist(), strict=True)
                },
                throughput=found[at],
            )
            for at in order.tolist()
        )

    def _estimates(self, levels: F64) -> tuple[Estimate, ...]:
        found = posterior_at(self.measured, levels)
        half = found.sd * _stretch(self.ratios) * student95(len(self.errors) - 1)
        return tuple(map(_estimate, found.mean.tolist(), half.tolist()))


def model_of(axes: Sequence[AxisLevels], places: I64, means: PointMeans) -> Model | None:
    """From the means of the points, whose values stand at `places` (points, axes) on their axes;
    None of fewer than three points.
    """
    if len(places) < _FEWEST:
        return None
    kept = np.arange(0, len(places), -(-len(places) // _MOST_MEASURED))
    grid = Grid(places, tuple(len(one.values) for one in axes), tuple(a.is_number for a in axes))
    executions = np.sqrt(means.count[kept].astype(np.float64))
    told = means.sigma is not None and means.freedom >= _FEW_REPEATS
    sizes = (max(means.sigma or 0.0, _LEAST_NOISE),) if told else _NOISES
    measured = Measurements(
        grid,
        places[kept].astype(np.float64),
        means.mean[kept],
        tuple(size / executions for size in sizes),
    )
    found = left_out(measured)
    return Model(tuple(axes), measured, kept, measured.values - found.mean, found.sd)


def _stretch(ratios: F64) -> float:
    """What deviations are too small by, as the points that were left out show: never less than
    1.
    """
    return max(1.0, float(np.sqrt(np.mean(ratios**2))))


def _position(axis: AxisLevels, value: Value) -> float | None:
    """The place of a value on its axis; between two numbers linear in the logarithm, or in the
    value where the axis has one that is not above 0.
    """
    if value in axis.values:
        return float(axis.values.index(value))
    if not axis.is_number or isinstance(value, str):
        return None
    levels = np.array(axis.values, np.float64)
    if not levels[0] <= value <= levels[-1]:
        return None
    scale = np.log if levels[0] > 0 else np.asarray
    return float(np.interp(scale(np.float64(value)), scale(levels), np.arange(len(levels))))


def _estimate(mean: float, half: float) -> Estimate:
    return Estimate(value=_exp(mean), low=_exp(mean - half), high=_exp(mean + half))


def _exp(value: float) -> float:
    return math.exp(min(max(value, -_MOST_LOG), _MOST_LOG))
