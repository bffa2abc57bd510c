"""Fit a family of curves to a measured series in logarithms, and refit noisy copies of it for
intervals.

The families are in `curves` (throughput over batch size) and `usl` (over concurrency); what they
share is here: weights from the stated errors plus the scatter that these do not explain, and a
parametric bootstrap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from profharness.analysis.curves.least_squares import (
    SETTLED,
    Bools,
    Fits,
    Model,
    extra_scatter,
    least_squares,
    noisy_copies,
)
from profharness.analysis.records import Estimate
from profharness.stats.bootstrap import generator
from profharness.trace.model import F64, I64

REPLICATES = 400
_TAIL = 0.025
_ROUNDS = 4
_KEPT_STARTS = 6
_ODD_TRIED = 3
_ROUGHLY = 1e-6
_TINY = 1e-6


@dataclass(frozen=True)
class Measured:
    """One series: distinct levels in rising order, throughput in items/s, its relative standard
    errors (0: not known).
    """

    level: F64
    throughput: F64
    error: F64

    @property
    def errors_known(self) -> bool:
        return bool((self.error > 0).all())

    def at(self, used: Bools) -> Measured:
        """These levels alone."""
        return Measured(self.level[used], self.throughput[used], self.error[used])

    def at_positions(self, kept: I64) -> Measured:
        """The levels at these positions alone, in rising order."""
        return Measured(self.level[kept], self.throughput[kept], self.error[kept])

    def from_position(self, position: int) -> Measured:
        """The part from this position on."""
        return Measured(self.level[position:], self.throughput[position:], self.error[position:])

    def times(self, factor: float, position: int) -> Measured:
        """All levels, those before this position with this factor, which is as uncertain as what
        lies behind it.
        """
        before = np.arange(len(self.level)) < position
        error = float(np.sqrt(np.mean(self.error[~before] ** 2) / max((~before).sum(), 1)))
        return Measured(
            self.level,
            np.where(before, factor * self.throughput, self.throughput),
            np.where(before, np.hypot(self.error, error), self.error),
        )


class Family(Protocol):
    """One kind of curve over its parameters; `starts` and the box may depend on the series."""

    parameters: int

    def model(self, level: F64, step: F64 | None = None) -> Model:
        """Log throughput; `step` (copies, points) adds the logarithm of a jump as a further, last
        parameter.
        """
        ...

    def box(self, measured: Measured) -> tuple[F64, F64]: ...

    def starts(self, measured: Measured) -> F64: ...


@dataclass(frozen=True)
class CurveFit:
    """Best parameters, the noise per point (relative), and whether that was estimated from the
    residuals.
    """

    family: Family
    measured: Measured
    theta: F64
    sigma: F64
    estimated: bool

    @property
    def scatters(self) -> bool:
        """Whether the levels lie further from the curve than their stated errors explain: by three
        standard deviations of chi-square.
        """
        return self.measured.errors_known and self.misfit > self.freedom + 3 * math.sqrt(
            2 * self.freedom
        )

    @property
    def misfit(self) -> float:
        """Squares of the residuals in units of the stated errors."""
        return float((self.residual**2 / np.maximum(self.measured.error, _TINY) ** 2).sum())

    @property
    def freedom(self) -> int:
        return len(self.measured.level) - self.family.parameters

    @property
    def values(self) -> F64:
        """Log throughput of the curve at the measured levels."""
        return np.asarray(self.family.model(self.measured.level)(self.theta[None, :])[0][0])

    @property
    def residual(self) -> F64:
        """Measured less fitted log throughput: the relative misfit of each point."""
        return np.asarray(np.log(self.measured.throughput) - self.values)


def fit_curve(family: Family, measured: Measured, near: F64 | None = None) -> CurveFit | None:
    """The weighted fit; None where no degree of freedom is left. Scatter beyond the stated errors
    is added to all points. It is looked for from many starts, or from the parameters `near` it.
    """
    if len(measured.level) <= family.parameters:
        return None
    logs, bounds = np.log(measured.throughput), family.box(measured)
    grid = family.starts(measured) if near is None else near[None, :]
    model, settled_at = family.model(measured.level), SETTLED if near is None else _ROUGHLY
    first = least_squares(model, grid, logs, np.ones_like(logs), bounds, settled_at)
    theta, grid = _best(first), first.theta[np.argsort(first.squares)[:_KEPT_STARTS]]
    tau, sigma = 0.0, np.ones_like(logs)
    for _ in range(_ROUNDS if measured.errors_known else 1):
        residual = logs - model(theta[None, :])[0][0]
        tau = extra_scatter(residual, measured.error, len(logs) - family.parameters)
        sigma = np.maximum(np.hypot(measured.error, tau), _TINY)
        if measured.errors_known:
            starts = np.vstack([theta, grid])
            theta = _best(least_squares(model, starts, logs, 1 / sigma**2, bounds, settled_at))
    return CurveFit(family, measured, theta, sigma, estimated=tau > 0 or not measured.errors_known)


def without_odd_level(fit: CurveFit) -> CurveFit | None:
    """The curve without the one level whose absence lets the others agree best; None where the
    levels do not scatter beyond their errors, or no degree of freedom would be left.

    Noise of a machine that others use is not normal: most levels are undisturbed, and one is off by
    a third. Which one it is, few levels cannot prove, so that a figure should hold both curves.
    """
    measured, count = fit.measured, len(fit.measured.level)
    if not fit.scatters or fit.freedom < 2:
        return None
    farthest = np.argsort(-np.abs(fit.residual) / fit.sigma)[:_ODD_TRIED]
    others = [np.delete(np.arange(count), left_out) for left_out in farthest]
    fits = [fit_curve(fit.family, measured.at_positions(kept), fit.theta) for kept in others]
    return min((one for one in fits if one is not None), key=lambda one: one.misfit, default=None)


def _best(fits: Fits) -> F64:
    return np.asarray(fits.theta[int(fits.squares.argmin())])


@dataclass(frozen=True)
class Copies:
    """Noisy copies of a fitted curve: log T (copies, points) and the parameters fitted to each."""

    logs: F64
    theta: F64


def refit_copies(
    fit: CurveFit, seed: str, copies: int = REPLICATES, settled_at: float = SETTLED
) -> Copies:
    """Parametric bootstrap around the fitted curve, seeded by `seed`."""
    noisy = noisy_copies(
        fit.values,
        fit.sigma,
        fit.freedom if fit.estimated else None,
        generator("curve", seed),
        copies,
    )
    start = np.repeat(fit.theta[None, :], copies, axis=0)
    model = fit.family.model(fit.measured.level)
    box = fit.family.box(fit.measured)
    return Copies(
        noisy, least_squares(model, start, noisy, 1 / fit.sigma**2, box, settled_at).theta
    )


def interval_of(
    value: float, copies: F64, limits: tuple[float, float] = (-np.inf, np.inf)
) -> Estimate:
    """Percentile interval around `value`; an end beyond its limit (or not finite) is not bounded by
    the data: None.
    """
    low, high = np.quantile(copies, [_TAIL, 1 - _TAIL], method="nearest")
    low, high = min(low, value), max(high, value)
    return Estimate(
        value=float(value) if limits[0] < value < limits[1] else None,
        low=float(low) if np.isfinite(low) and low > limits[0] else None,
        high=float(high) if np.isfinite(high) and high < limits[1] else None,
    )


def local_noise(measured: Measured) -> float:
    """Relative noise from third divided differences of log T (any spacing), blind to smooth bends;
    0 below 5 levels.

    The median of the absolute values is used, so that a single jump or corner does not count.
    """
    count = len(measured.level) - 3
    if count < 2:
        return 0.0
    windows = np.arange(4) + np.arange(count)[:, None]
    x, y = np.log(measured.level)[windows], np.log(measured.throughput)[windows]
    apart = x[:, :, None] - x[:, None, :] + np.eye(4)
    weight = 1 / apart.prod(axis=2)
    difference = (weight * y).sum(axis=1) / np.sqrt((weight**2).sum(axis=1))
    return float(1.4826 * np.median(np.abs(difference)))
