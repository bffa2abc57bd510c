"""Weighted least squares for many noisy copies of one small curve at once.

A fit, its bootstrap and the simulation behind the step test are the same few-parameter problem on
ten points, hundreds of times: Levenberg-Marquardt in numpy over a leading axis does them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from profharness.stats.bootstrap import student95
from profharness.trace.model import F64, I64

ITERATIONS = 40
_MAX_DAMPING = 1e5
# A step that gains no more than this share, and was not short only for its damping, was the last
# that is worth it. With 1e-7 one copy in a thousand stops in a flat valley, up to 14 % above its
# least sum.
SETTLED, _ALMOST_UNDAMPED = 1e-10, 0.1
Bools = npt.NDArray[np.bool_]


class Model(Protocol):
    """Values and derivatives of a curve: (copies, parameters) -> (copies, points), (copies, points,
    parameters).
    """

    def __call__(self, theta: F64) -> tuple[F64, F64]: ...

    def take(self, rows: I64) -> Model:
        """The model of these copies alone."""
        ...


@dataclass(frozen=True)
class Fits:
    """Parameters (copies, parameters) and the weighted sum of squares (copies,)."""

    theta: F64
    squares: F64


def least_squares(
    model: Model,
    start: F64,
    y: F64,
    weight: F64,
    bounds: tuple[F64, F64],
    settled_at: float = SETTLED,
) -> Fits:
    """Minimise sum of weight * (y - model)^2 for each copy, inside the box `bounds`.

    `start` is (copies, parameters), `y` broadcasts to (copies, points), `weight` is (points,).
    Steps that do not lower the sum are refused and damped further, so the result is never worse
    than the start. Copies that have settled (a step gains less than this share of their sum) are
    left alone, so that the slowest does not set the cost of all.
    """
    theta = np.clip(start, *bounds)
    squares = np.empty(len(theta))
    rows = np.arange(len(theta))
    y = np.broadcast_to(y, (len(theta), y.shape[-1]))
    state = _State.at(model, theta.copy(), y, weight)
    for _ in range(ITERATIONS):
        settled = state.advance(model, y, weight, bounds, settled_at)
        if settled.any():
            theta[rows[settled]], squares[rows[settled]] = (
                state.theta[settled],
                state.squares[settled],
            )
            going = np.flatnonzero(~settled)
            rows, y, model, state = rows[going], y[going], model.take(going), state.take(going)
            if not len(rows):
                break
    theta[rows], squares[rows] = state.theta, state.squares
    return Fits(theta, squares)


@dataclass
class _State:
    """Where every copy stands: parameters, the curve and its derivatives there, the sum of squares,
    its damping.
    """

    theta: F64
    values: F64
    slopes: F64
    squares: F64
    damping: F64

    @classmethod
    def at(cls, model: Model, theta: F64, y: F64, weight: F64) -> _State:
        values, slopes = model(theta)
        return cls(
            theta,
            values,
            slopes,
            (weight * (y - values) ** 2).sum(axis=1),
            np.full(len(theta), 1e-2),
        )

    def take(self, rows: I64) -> _State:
        return _State(
            self.theta[rows],
            self.values[rows],
            self.slopes[rows],
            self.squares[rows],
            self.damping[rows],
        )

    def advance(
        self, model: Model, y: F64, weight: F64, bounds: tuple[F64, F64], settled_at: float
    ) -> Bools:
        """One damped step of every copy; which of them have settled."""
        step = _step(self.slopes, weight, y - self.values, self.damping)
        theta = np.minimum(np.maximum(self.theta + step, bounds[0]), bounds[1])
        values, slopes = model(theta)
        squares = (weight * (y - values) ** 2).sum(axis=1)
        better = squares < self.squares
        gain = np.where(better, self.squares - squares, 0.0)
        np.copyto(self.theta, theta, where=better[:, None])
        np.copyto(self.values, values, where=better[:, None])
        np.copyto(self.slopes, slopes, where=better[:, None, None])
        settled = np.where(
            better,
            (gain <= settled_at * self.squares) & (self.damping <= _ALMOST_UNDAMPED),
            self.damping >= _MAX_DAMPING,
        )
        self.squares = np.where(better, squares, self.squares)
        damping = np.where(better, self.damping / 5, self.damping * 8)
        self.damping = np.minimum(np.maximum(damping, 1e-9), _MAX_DAMPING)
        return np.asarray(settled)


def _step(slopes: F64, weight: F64, residual: F64, damping: F64) -> F64:
    """The damped Gauss-Newton step. Plain sums rather than einsum, whose last digits depend on
    memory alignment.
    """
    weighted = slopes * weight[None, :, None]
    size = slopes.shape[2]
    pairs, everywhere = _pairs(size)
    # points last and side by side, where NumPy adds in pairs
    by_parameter = np.ascontiguousarray(slopes.transpose(2, 0, 1))
    heavy = by_parameter * weight
    cells = [(heavy[row] * by_parameter[column]).sum(axis=1) for row, column in pairs]
    normal = np.stack(cells, axis=1)[:, everywhere].reshape(-1, size, size)
    weighted *= residual[:, :, None]
    gradient = weighted.sum(axis=1)
    diagonal = normal.diagonal(axis1=1, axis2=2)
    lift = damping[:, None] * diagonal + 1e-12 * diagonal.max(axis=1, keepdims=True) + 1e-300
    normal[:, np.arange(size), np.arange(size)] += lift
    return np.asarray(np.linalg.solve(normal, gradient[:, :, None])[:, :, 0])


@cache
def _pairs(size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Row and column of each cell in a symmetric matrix's lower half, and where each of all its
    cells lies in that.
    """
    pairs = [(row, column) for row in range(size) for column in range(row + 1)]
    cells = [(max(cell), min(cell)) for cell in product(range(size), repeat=2)]
    return pairs, [pairs.index(cell) for cell in cells]


def extra_scatter(residual: F64, errors: F64, freedom: int) -> float:
    """Scatter tau beyond the known errors, so that sum of r^2 / (known^2 + tau^2) equals the
    degrees of freedom.

    The moment estimate of random-effects meta-analysis (Paule and Mandel 1982); 0 where the known
    errors suffice.
    """
    if freedom < 1 or (residual**2).sum() == 0:
        return 0.0
    smallest = 1e-12
    if (residual**2 / np.maximum(errors, smallest) ** 2).sum() <= freedom:
        return 0.0
    low, high = 0.0, float(np.sqrt((residual**2).sum() / freedom))
    for _ in range(60):
        middle = (low + high) / 2
        if (residual**2 / np.maximum(errors**2 + middle**2, smallest**2)).sum() > freedom:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def noisy_copies(
    values: F64, sigma: F64, freedom: int | None, rng: np.random.Generator, copies: int
) -> F64:
    """`copies` of a curve with normal noise; with `freedom`, its size is itself drawn.

    When sigma was estimated from few residuals, its own uncertainty belongs into the intervals:
    each copy gets sigma * sqrt(freedom / chi2), as in the posterior of a normal variance.
    """
    noise = rng.standard_normal((copies, len(values))) * sigma
    if freedom is not None:
        # Below one degree of freedom nothing is known; a single draw is capped at Student's 97.5 %
        # quantile.
        scale = np.sqrt(max(freedom, 1) / np.maximum(rng.chisquare(max(freedom, 1), copies), 1e-3))
        noise *= np.minimum(scale, student95(max(freedom, 1)))[:, None]
    return np.asarray(values + noise)
