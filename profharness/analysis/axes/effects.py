"""What each axis is worth, and two together: main effects and interactions on the logarithm of the
throughput, with intervals that hold for the largest of many differences (docs/metrics.md#axes).

Scheffé's intervals (Scheffé 1953, Biometrika 40) hold for all contrasts of an effect at once;
Bonferroni shares the 5 % among the effects. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from profharness.analysis.axes.coding import Design, design_of
from profharness.analysis.axes.noise import PointMeans
from profharness.analysis.axes.records import AxisLevels, Effect, Parameters
from profharness.stats.estimate import Estimate
from profharness.trace.model import F64, I64

ALPHA = 0.05
_MOST_LOG = 700.0


@dataclass(frozen=True, eq=False)
class Fit:
    """The coefficients of a design with their covariance, which has `freedom` degrees of freedom
    behind it; no covariance where there is no error to tell.
    """

    design: Design
    coefficients: F64
    covariance: F64 | None
    freedom: int


@dataclass(frozen=True)
class Effects:
    """All effects of a scan, largest first, and why there are none."""

    effects: tuple[Effect, ...] = ()
    needs: str = ""


def effects_of(axes: Sequence[AxisLevels], places: I64, means: PointMeans) -> Effects:
    """The effects of the axes that have two values at least; `places` (points, axes) holds the
    position of each point's value on its axis.
    """
    varied = [at for at in range(len(axes)) if len(np.unique(places[:, at])) > 1]
    if not varied:
        return Effects(needs="two points that were measured, at two values of an axis")
    kept, columns = [], []
    for at in varied:  # values at which nothing was measured have no effect
        present, position = np.unique(places[:, at], return_inverse=True)
        values = tuple(axes[at].values[index] for index in present.tolist())
        kept.append(AxisLevels(name=axes[at].name, values=values, is_number=axes[at].is_number))
        columns.append(position)
    design, needs = design_of(kept, np.column_stack(columns), repeated=means.sigma is not None)
    if design is None:
        return Effects(needs=needs)
    fit = _fit(design, means)
    each = [(at,) for at in range(len(kept))] + list(design.pairs)
    share = ALPHA / len(each)
    found = [
        _main(fit, axes_of[0], share) if len(axes_of) == 1 else _pair(fit, axes_of, share)
        for axes_of in each
    ]
    ordered = sorted(found, key=lambda one: (len(one.axes), -(one.factor.value or 1.0)))
    return Effects(tuple(ordered))


def _fit(design: Design, means: PointMeans) -> Fit:
    """Weighted by the number of executions. The error is the noise of the repeats; in a design with
    gaps, or without repeats, the larger one of it and of what the effects do not explain.
    """
    matrix, weight = design.matrix(), np.sqrt(means.count.astype(np.float64))
    weighted = matrix * weight[:, None]
    coefficients = np.linalg.lstsq(weighted, means.mean * weight, rcond=None)[0]
    left = len(matrix) - matrix.shape[1]
    errors = [] if means.sigma is None else [(means.sigma**2, means.freedom)]
    complete = len(matrix) == np.prod([len(one.axis.values) for one in design.coded])
    if left > 0 and not (complete and errors):
        rest = (means.mean - matrix @ coefficients) * weight
        errors.append((float((rest**2).sum()) / left, left))
    if not errors:
        return Fit(design, coefficients, None, 0)
    variance, freedom = max(errors)
    return Fit(design, coefficients, variance * np.linalg.inv(weighted.T @ weighted), freedom)


def _main(fit: Fit, at: int, share: float) -> Effect:
    coded = fit.design.coded[at]
    where = fit.design.slice_of((at,))
    parts = coded.rows @ fit.coefficients[where]
    best, worst = int(parts.argmax()), int(parts.argmin())
    contrast = np.zeros(len(fit.coefficients))
    contrast[where] = coded.rows[best] - coded.rows[worst]
    name, values = coded.axis.name, coded.axis.values
    return _effect(
        fit,
        contrast,
        (coded.columns, share),
        Effect(
            axes=(name,),
            factor=Estimate(value=None),
            best={name: values[best]},
            worst={name: values[worst]},
            levels=tuple(np.exp(parts).tolist()),
        ),
    )


def _pair(fit: Fit, pair: tuple[int, ...], share: float) -> Effect:
    first, second = (fit.design.coded[at] for at in pair)
    where = fit.design.slice_of(pair)
    table = fit.coefficients[where].reshape(first.columns, second.columns)
    cells = first.rows @ table @ second.rows.T
    best, worst = _steepest(cells)
    alone = first.rows @ fit.coefficients[fit.design.slice_of((pair[0],))]
    if alone[best[0]] < alone[worst[0]]:  # both turned round say the same, of a gain
        best, worst = worst, best
    contrast = np.zeros(len(fit.coefficients))
    contrast[where] = np.outer(
        first.rows[best[0]] - first.rows[worst[0]], second.rows[best[1]] - second.rows[worst[1]]
    ).ravel()
    axes = (first.axis, second.axis)

    def parameters(places: tuple[int, int]) -> Parameters:
        return {axis.name: axis.values[place] for axis, place in zip(axes, places, strict=True)}

    return _effect(
        fit,
        contrast,
        (first.columns * second.columns, share),
        Effect(
            axes=(axes[0].name, axes[1].name),
            factor=Estimate(value=None),
            best=parameters(best),
            worst=parameters(worst),
        ),
    )


def _steepest(cells: F64) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two rows and two columns whose double difference is largest."""
    differences = cells[:, None, :] - cells[None, :, :]
    rise = differences.max(axis=2) - differences.min(axis=2)
    row, other = np.unravel_index(int(rise.argmax()), rise.shape)
    across = differences[row, other]
    return (int(row), int(across.argmax())), (int(other), int(across.argmin()))


def _effect(fit: Fit, contrast: F64, bound: tuple[int, float], effect: Effect) -> Effect:
    """The effect with its factor; `bound` is the number of its columns and its share of the 5 %."""
    value = float(contrast @ fit.coefficients)
    if fit.covariance is None:
        return replace(effect, factor=Estimate(value=_exp(value)))
    from scipy.special import fdtri  # a tenth of a second, for scans of commands alone

    columns, share = bound
    error = math.sqrt(max(float(contrast @ fit.covariance @ contrast), 0.0))
    width = error * math.sqrt(columns * float(fdtri(columns, fit.freedom, 1 - share)))
    return replace(
        effect,
        factor=Estimate(value=_exp(value), low=_exp(value - width), high=_exp(value + width)),
        proven=value - width > 0,
    )


def _exp(value: float) -> float:
    return math.exp(min(max(value, -_MOST_LOG), _MOST_LOG))
