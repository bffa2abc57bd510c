"""Weighted least squares for many noisy copies of one small curve at once.

A fit, its bootstrap and the simulation behind the step test are the same few-parameter problem on ten
points, hundreds of times: Levenberg-Marquardt in numpy over a leading axis does them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from profharness.analysis.bootstrap import student95
from profharness.trace.model import F64

ITERATIONS = 40
_MAX_DAMPING = 1e8


class Model(Protocol):
    """Values and derivatives of a curve: (copies, parameters) -> (copies, points), (copies, points, parameters)."""

    def __call__(self, theta: F64) -> tuple[F64, F64]: ...


@dataclass(frozen=True)
class Fits:
    """Parameters (copies, parameters) and the weighted sum of squares (copies,)."""

    theta: F64
    squares: F64


def least_squares(model: Model, start: F64, y: F64, weight: F64, bounds: tuple[F64, F64]) -> Fits:
    """Minimise sum of weight * (y - model)^2 for each copy, inside the box `bounds`.

    `start` is (copies, parameters), `y` and `weight` broadcast to (copies, points). Steps that do not lower
    the sum are refused and damped further, so the result is never worse than the start.
    """
    low, high = bounds
    theta = np.clip(start, low, high)
    values, slopes = model(theta)
    squares = (weight * (y - values) ** 2).sum(axis=1)
    damping = np.full(len(theta), 1e-2)
    for _ in range(ITERATIONS):
        trial = np.clip(theta + _step(slopes, weight, y - values, damping), low, high)
        trial_values, trial_slopes = model(trial)
        trial_squares = (weight * (y - trial_values) ** 2).sum(axis=1)
        better = trial_squares < squares
        gain = np.where(better, squares - trial_squares, 0.0)
        theta[better], values[better], slopes[better] = trial[better], trial_values[better], trial_slopes[better]
        settled = (gain <= 1e-7 * squares) & (better | (damping >= _MAX_DAMPING))
        squares = np.where(better, trial_squares, squares)
        damping = np.clip(np.where(better, damping / 5, damping * 8), 1e-9, _MAX_DAMPING)
        if settled.all():
            break
    return Fits(theta, squares)


def _step(slopes: F64, weight: F64, residual: F64, damping: F64) -> F64:
    """The damped Gauss-Newton step. Plain sums rather than einsum, whose last digits depend on memory alignment."""
    weighted = slopes * np.broadcast_to(weight, residual.shape)[:, :, None]
    size = slopes.shape[2]
    normal = np.empty((len(slopes), size, size))
    for row in range(size):
        for column in range(row + 1):
            normal[:, row, column] = normal[:, column, row] = (weighted[:, :, row] * slopes[:, :, column]).sum(axis=1)
    gradient = (weighted * residual[:, :, None]).sum(axis=1)
    diagonal = normal[:, np.arange(size), np.arange(size)]
    lift = damping[:, None] * diagonal + 1e-12 * diagonal.max(axis=1, keepdims=True) + 1e-300
    return np.asarray(np.linalg.solve(normal + lift[:, :, None] * np.eye(size), gradient[:, :, None])[:, :, 0])


def extra_scatter(residual: F64, known: F64, freedom: int) -> float:
    """Scatter tau beyond the known errors, so that sum of r^2 / (known^2 + tau^2) equals the degrees of freedom.

    The moment estimate of random-effects meta-analysis (Paule and Mandel 1982); 0 where the known errors suffice.
    """
    if freedom < 1 or (residual**2).sum() == 0:
        return 0.0
    smallest = 1e-12
    if (residual**2 / np.maximum(known, smallest) ** 2).sum() <= freedom:
        return 0.0
    low, high = 0.0, float(np.sqrt((residual**2).sum() / freedom))
    for _ in range(60):
        middle = (low + high) / 2
        if (residual**2 / np.maximum(known**2 + middle**2, smallest**2)).sum() > freedom:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def noisy_copies(values: F64, sigma: F64, freedom: int | None, rng: np.random.Generator, copies: int) -> F64:
    """`copies` of a curve with normal noise; with `freedom`, its size is itself drawn.

    When sigma was estimated from few residuals, its own uncertainty belongs into the intervals: each copy
    gets sigma * sqrt(freedom / chi2), as in the posterior of a normal variance.
    """
    noise = rng.standard_normal((copies, len(values))) * sigma
    if freedom is not None:
        # Below one degree of freedom nothing is known; a single draw is capped at Student's 97.5 % quantile.
        scale = np.sqrt(max(freedom, 1) / np.maximum(rng.chisquare(max(freedom, 1), copies), 1e-3))
        noise *= np.minimum(scale, student95(max(freedom, 1)))[:, None]
    return np.asarray(values + noise)
