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
class _Shape:
    """A kernel's lengths per axis, the share of the sum in it, and its variance."""

    lengths: tuple[float, ...]
    added: float
    variance: float


@dataclass(frozen=True, eq=False)
class _Fit:
    """The measured settings under one kernel and one noise: the Cholesky factor of their
    covariance, the weights of what was measured, and its log likelihood but for a constant.
    """

    shape: _Shape
    factor: F64
    weights: F64
    likelihood: float


@dataclass(frozen=True, eq=False)
class Measurements:
    """Logarithms `values` measured at positions `levels` (measured x axes) of a grid with `counts`
    values per axis. `noises` are the standard errors of the logarithms; of several alternatives
    the likeliest holds.
    """

    grid: Grid
    levels: F64
    values: F64
    noises: tuple[F64, ...]

    @property
    def middle(self) -> float:
        """Around which the process lies."""
        return float(self.values.mean())

    def fits(self) -> Iterator[_Fit]:
        """One for each kernel of the table, and each alternative of the noise."""
        distances = _distances(self.grid, self.levels, self.levels)
        rest, std = self.values - self.middle, float(self.values.std())
        for noise in self.noises:
            spread = max(std, _LEAST_SPREAD, float(noise.mean()))
            for lengths, added in _shapes(len(self.grid.counts)):
                alike = _kernel(self.grid, distances, lengths, added)
                for size in _SIZES:
                    shape = _Shape(lengths, added, (size * spread) ** 2)
                    yield _fit(shape, alike, rest, noise)


def grid_of(counts: Sequence[int], ordered: Sequence[bool]) -> Grid:
    """The full grid, the last axis varying fastest."""
    levels = np.array(list(product(*map(range, counts))), np.int64).reshape(-1, len(counts))
    return Grid(levels, tuple(counts), tuple(ordered))


def posterior(
    grid: Grid, places: npt.ArrayLike, values: npt.ArrayLike, sigma: npt.ArrayLike
) -> Posterior:
    """Of all settings, from logarithms `values` measured at the settings `places` with standard
    errors `sigma` (of the logarithm: relative ones). At least one is needed.
    """
    at = np.asarray(places, np.int64)
    measured = Measurements(
        grid,
        grid.levels[at].astype(np.float64),
        np.asarray(values, np.float64),
        (np.asarray(sigma, np.float64),),
    )
    return posterior_at(measured, grid.levels.astype(np.float64))


def posterior_at(measured: Measurements, levels: F64) -> Posterior:
    """Of settings at any positions (settings x axes), also between two values of an axis."""
    best = max(measured.fits(), key=lambda fit: fit.likelihood)
    distances = _distances(measured.grid, levels, measured.levels)
    alike = _kernel(measured.grid, distances, best.shape.lengths, best.shape.added)
    kernel = best.shape.variance * (alike + _CONSTANT)
    known = np.linalg.solve(best.factor, kernel.T)
    variance = best.shape.variance * (1 + _CONSTANT) - (known * known).sum(axis=0)
    mean = measured.middle + kernel @ best.weights
    return Posterior(mean, np.sqrt(np.maximum(variance, 0.0)))


def left_out(measured: Measurements) -> Posterior:
    """Of each measured setting what the others say of a measurement there, with its noise.

    Mean and variance of one without the others are those of Rasmussen and Williams 2006 (5.12). The
    kernel is the likeliest one for the others too: the likelihood of all is that of the others
    times that of the one given the others.
    """
    count = len(measured.values)
    best, mean, sd = np.full(count, -math.inf), np.zeros(count), np.zeros(count)
    for fit in measured.fits():
        half = np.linalg.inv(fit.factor)
        variance = 1 / (half * half).sum(axis=0)
        error = fit.weights * variance
        likelihood = fit.likelihood + 0.5 * (np.log(variance) + error**2 / variance)
        better = likelihood > best
        best = np.where(better, likelihood, best)
        mean = np.where(better, measured.values - error, mean)
        sd = np.where(better, np.sqrt(variance), sd)
    return Posterior(mean, sd)


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


def _distances(grid: Grid, levels: F64, measured: F64) -> list[F64]:
    """Per axis, settings x measured: 0 to 1 between numbers; 0 or 1 between categories."""
    found = []
    for axis, (count, ordered) in enumerate(zip(grid.counts, grid.ordered, strict=True)):
        apart = np.abs(levels[:, axis][:, None] - measured[:, axis][None, :])
        found.append(apart / max(count - 1, 1) if ordered else (apart > 0).astype(np.float64))
    return found


def _kernel(grid: Grid, distances: Sequence[F64], lengths: Sequence[float], added: float) -> F64:
    parts = [
        np.exp(-0.5 * (apart / length) ** 2) if ordered else 1.0 - apart
        for apart, length, ordered in zip(distances, lengths, grid.ordered, strict=True)
    ]
    shape: F64 = added * np.mean(parts, axis=0) + (1 - added) * np.prod(parts, axis=0)
    return shape


def _fit(shape: _Shape, alike: F64, rest: F64, noise: F64) -> _Fit:
    own = shape.variance * (alike + _CONSTANT) + np.diag(noise**2 + _JITTER)
    factor = np.linalg.cholesky(own)
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, rest))
    likelihood = -0.5 * float(rest @ weights) - float(np.log(np.diag(factor)).sum())
    return _Fit(shape, factor, weights, likelihood)
