"""What few noisy measurements say of all settings of a grid: a Gaussian process over listed values.

The logarithm of a figure is a sum of one smooth curve per axis and of a smooth surface over all of
them (kernels added and multiplied: Duvenaud, Nickisch and Rasmussen 2011). Values of an axis of
numbers stand evenly apart, as they were listed; those of a category are equally far from one
another. Lengths and shares are those of a small table under which the measurements are likeliest
(Rasmussen and Williams 2006, section 5.4.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from profharness.trace.model import F64, I64

_LENGTHS = (0.4, 0.8, 1.5)
_SHORT, _LONG = 0.5, 1.5
_ADDED = (0.3, 0.7, 0.95)
_SIZES = (1.0, 2.0)
_CONSTANT = 0.5
_LEAST_SPREAD = 1e-3
_JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class Grid:
    """All settings: `levels` (settings x axes) are positions of the values on each axis, which has
    `counts` of them; `ordered` says which axes are numbers.
    """

    levels: I64
    counts: tuple[int, ...]
    ordered: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.levels)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Of each setting the expected logarithm, and the standard deviation of what is not known of
    it, without the noise of a further measurement.
    """

    mean: F64
    sd: F64


@dataclass(frozen=True, eq=False)
class _Fit:
    """The kernel between all settings and the measured ones under the likeliest parameters."""

    kernel: F64
    factor: F64
    weights: F64
    variance: float
    likelihood: float


def grid_of(counts: Sequence[int], ordered: Sequence[bool]) -> Grid:
    """The full grid, the last axis varying fastest."""
    levels = np.array(list(product(*map(range, counts))), np.int64).reshape(-1, len(counts))
    return Grid(levels, tuple(counts), tuple(ordered))


def posterior(
    grid: Grid, places: npt.ArrayLike, values: npt.ArrayLike, sigma: npt.ArrayLike
) -> Posterior:
    """From logarithms `values` measured at the settings `places` with standard errors `sigma` (of
    the logarithm: relative ones). At least one is needed.
    """
    at = np.asarray(places, np.int64)
    y, noise = np.asarray(values, np.float64), np.asarray(sigma, np.float64)
    middle = float(y.mean())
    distances = _distances(grid, at)
    spread = max(float(y.std()), _LEAST_SPREAD, float(noise.mean()))
    fits = (
        _fit(_kernel(grid, distances, lengths, added), at, y - middle, noise, (size * spread) ** 2)
        for (lengths, added) in _shapes(len(grid.counts))
        for size in _SIZES
    )
    best = max(fits, key=lambda fit: fit.likelihood)
    known = np.linalg.solve(best.factor, best.kernel.T)
    variance = best.variance * (1 + _CONSTANT) - (known * known).sum(axis=0)
    return Posterior(middle + best.kernel @ best.weights, np.sqrt(np.maximum(variance, 0.0)))


def expected_gain(found: Posterior, best: float) -> F64:
    """The expected improvement of each setting over `best` (Jones, Schonlau and Welch 1998)."""
    sd = np.maximum(found.sd, 1e-9)
    z = (found.mean - best) / sd
    gain: F64 = sd * (z * below(z) + np.exp(-z * z / 2) / math.sqrt(2 * math.pi))
    return gain


def below(z: F64) -> F64:
    """The standard normal distribution."""
    return 0.5 * (1 + np.array([math.erf(one / math.sqrt(2)) for one in z.ravel()])).reshape(
        z.shape
    )


def _shapes(axes: int) -> Iterator[tuple[tuple[float, ...], float]]:
    """Lengths per axis and the share of the sum: all axes alike, or one of them wilder."""
    alike = [(length,) * axes for length in _LENGTHS]
    wilder = [tuple(_SHORT if at == one else _LONG for at in range(axes)) for one in range(axes)]
    return product(alike + wilder, _ADDED)


def _distances(grid: Grid, at: I64) -> list[F64]:
    """Per axis, settings x measured: 0 to 1 between numbers; 0 or 1 between categories."""
    found = []
    for axis, (count, ordered) in enumerate(zip(grid.counts, grid.ordered, strict=True)):
        column = grid.levels[:, axis]
        apart = np.abs(column[:, None] - column[at][None, :]).astype(np.float64)
        found.append(apart / max(count - 1, 1) if ordered else (apart > 0).astype(np.float64))
    return found


def _kernel(grid: Grid, distances: Sequence[F64], lengths: Sequence[float], added: float) -> F64:
    parts = [
        np.exp(-0.5 * (apart / length) ** 2) if ordered else 1.0 - apart
        for apart, length, ordered in zip(distances, lengths, grid.ordered, strict=True)
    ]
    shape: F64 = added * np.mean(parts, axis=0) + (1 - added) * np.prod(parts, axis=0)
    return shape


def _fit(shape: F64, at: I64, y: F64, noise: F64, variance: float) -> _Fit:
    kernel = variance * (shape + _CONSTANT)
    own = kernel[at] + np.diag(noise**2 + _JITTER)
    factor = np.linalg.cholesky(own)
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, y))
    likelihood = -0.5 * float(y @ weights) - float(np.log(np.diag(factor)).sum())
    return _Fit(kernel, factor, weights, variance, likelihood)
