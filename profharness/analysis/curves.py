"""Throughput over batch size: T(b) = T_max b / (b^p + h^p)^(1/p), fitted in logarithms (METRICS 4).

p = 1 is the hyperbola of a fixed cost plus a cost per item; a large p is a sharp corner at h, where the
asymptotes T_max b / h and T_max meet. The model serves for intervals and extrapolation; b90 comes from a
monotone interpolation of the measured points. Pure functions; no step is looked for here (`steps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.bootstrap import generator
from profharness.analysis.fitting import Fits, extra_scatter, least_squares, noisy_copies
from profharness.analysis.records import BatchCurve, Estimate
from profharness.trace.model import F64

PARAMETERS = 3
REPLICATES = 400
P_LIMITS = (0.25, 30.0)
# Beyond these the data say nothing: an end of an interval that gets there is reported as not bounded.
_T_FACTOR = 100.0
_H_FACTOR = 1000.0
_STARTS_P = (0.6, 1.0, 1.6, 3.0, 8.0)
_UNBOUNDED_SHARE = 0.025


@dataclass(frozen=True)
class Measured:
    """One series: distinct levels in rising order, throughput in items/s, its relative standard errors (0: not known)."""

    level: F64
    throughput: F64
    error: F64

    @property
    def errors_known(self) -> bool:
        return bool((self.error > 0).all())

    def from_level(self, position: int) -> Measured:
        """The part from this position on."""
        return Measured(self.level[position:], self.throughput[position:], self.error[position:])


class BatchModel:
    """log T over log b; parameters log T_max, log h, log p, and with `step` a jump at each copy's position.

    `step` is (copies, points): 0 before the jump and 1 from it on; its factor's logarithm is the fourth parameter.
    """

    def __init__(self, level: F64, step: F64 | None = None) -> None:
        self.log_level = np.log(level)
        self.step = step

    def __call__(self, theta: F64) -> tuple[F64, F64]:
        p = np.exp(theta[:, 2:3])
        distance = self.log_level - theta[:, 1:2]
        u = p * distance
        bend = np.logaddexp(0, u) / p
        beyond = 1 / (1 + np.exp(np.clip(-u, -700, 700)))
        values = theta[:, 0:1] + distance - bend
        slopes = [np.ones_like(values), beyond - 1, bend - beyond * distance]
        if self.step is not None:
            values = values + theta[:, 3:4] * self.step
            slopes.append(np.broadcast_to(self.step, values.shape))
        return values, np.stack(slopes, axis=2)


@dataclass(frozen=True)
class BatchFit:
    """Best parameters (log T_max, log h, log p), noise per point (relative), and whether it was estimated from residuals."""

    measured: Measured
    theta: F64
    sigma: F64
    estimated: bool

    @property
    def freedom(self) -> int:
        return len(self.measured.level) - PARAMETERS

    @property
    def values(self) -> F64:
        """log T of the curve at the measured levels."""
        return np.asarray(BatchModel(self.measured.level)(self.theta[None, :])[0][0])

    @property
    def residual(self) -> F64:
        return np.asarray(np.log(self.measured.throughput) - self.values)


def box(measured: Measured) -> tuple[F64, F64]:
    """Bounds of log T_max, log h, log p."""
    top, level = measured.throughput.max(), measured.level
    low = np.log([top / 2, level[0] / _H_FACTOR, P_LIMITS[0]])
    high = np.log([top * _T_FACTOR, level[-1] * _H_FACTOR, P_LIMITS[1]])
    return low, high


def starts(measured: Measured) -> F64:
    """A grid over h and p with the T_max that suits each: (starts, 3)."""
    logs = np.log(measured.throughput)
    corners = np.exp(np.linspace(np.log(measured.level[0]) - 1, np.log(measured.level[-1]) + 1, 7))
    grid = np.array([[0.0, np.log(h), np.log(p)] for h in corners for p in _STARTS_P])
    grid[:, 0] = (logs - BatchModel(measured.level)(grid)[0]).mean(axis=1)
    return grid


def best_of(fits: Fits) -> F64:
    """Parameters of the copy with the smallest sum of squares."""
    return np.asarray(fits.theta[int(fits.squares.argmin())])


def fit_batch(measured: Measured) -> BatchFit | None:
    """The weighted fit; None with fewer than four levels. Scatter beyond the stated errors is added to all points."""
    if len(measured.level) <= PARAMETERS:
        return None
    logs, bounds = np.log(measured.throughput), box(measured)
    model, grid = BatchModel(measured.level), starts(measured)
    sigma = np.ones_like(logs)
    theta = best_of(least_squares(model, grid, logs, 1 / sigma**2, bounds))
    tau = 0.0
    for _ in range(4 if measured.errors_known else 1):
        residual = logs - model(theta[None, :])[0][0]
        tau = extra_scatter(residual, measured.error, len(logs) - PARAMETERS)
        sigma = np.sqrt(np.maximum(measured.error**2 + tau**2, 1e-12))
        if measured.errors_known:
            theta = best_of(least_squares(model, np.vstack([theta, grid]), logs, 1 / sigma**2, bounds))
    return BatchFit(measured, theta, sigma, estimated=tau > 0 or not measured.errors_known)


def refit_copies(fit: BatchFit, seed: str, copies: int = REPLICATES) -> tuple[F64, F64]:
    """Parametric bootstrap: noisy copies of the curve (log T, (copies, points)) and their fits (copies, 3)."""
    noisy = noisy_copies(fit.values, fit.sigma, fit.freedom if fit.estimated else None, generator("curve", seed), copies)
    start = np.repeat(fit.theta[None, :], copies, axis=0)
    fits = least_squares(BatchModel(fit.measured.level), start, noisy, 1 / fit.sigma**2, box(fit.measured))
    return noisy, fits.theta


def batch_curve(fit: BatchFit, seed: str) -> BatchCurve:
    """The parameters with 95 % intervals, and b90; ends that the data do not bound are None."""
    noisy, thetas = refit_copies(fit, seed)
    low, high = box(fit.measured)
    t_max = bounded_estimate(fit.theta[0], thetas[:, 0], (-np.inf, high[0]))
    b_half = bounded_estimate(fit.theta[1], thetas[:, 1], (low[1], high[1]))
    power = bounded_estimate(fit.theta[2], thetas[:, 2], (-np.inf, np.inf))
    return BatchCurve(t_max=t_max, b_half=b_half, p=power, b90=_b90(fit, noisy, thetas))


def bounded_estimate(best: float, copies: F64, limits: tuple[float, float]) -> Estimate:
    """Value and percentile interval of a logarithm, None for an end (or a value) that lies at its limit."""
    low, high = np.quantile(copies, [_UNBOUNDED_SHARE, 1 - _UNBOUNDED_SHARE])
    near = 0.01
    return Estimate(
        value=float(np.exp(best)) if limits[0] + near < best < limits[1] - near else None,
        low=float(np.exp(min(low, best))) if low > limits[0] + near else None,
        high=float(np.exp(max(high, best))) if high < limits[1] - near else None,
    )


def _b90(fit: BatchFit, noisy: F64, thetas: F64) -> Estimate:
    """Where 90 % of T_max is reached on the measured points; value and high are None when that is not in the scan.

    The interval also holds where the fitted curves cross, since the points between two levels are not measured.
    """
    level = fit.measured.level
    goal = np.log(0.9) + fit.theta[0]
    value = float(monotone_crossing(level, np.log(fit.measured.throughput)[None, :], np.array([goal]))[0])
    measured = np.sort(monotone_crossing(level, noisy, np.log(0.9) + thetas[:, 0]))
    modelled = np.sort(model_crossing(thetas, 0.9))
    first, last = int(_UNBOUNDED_SHARE * (len(measured) - 1)), int(np.ceil((1 - _UNBOUNDED_SHARE) * (len(measured) - 1)))
    low = float(min(measured[first], modelled[first], value, level[-1]))
    if not np.isfinite(value) or not np.isfinite(measured[last]):
        return Estimate(value=value if np.isfinite(value) else None, low=low)
    return Estimate(value=value, low=low, high=float(max(measured[last], modelled[last], value)))


def model_crossing(thetas: F64, share: float) -> F64:
    """Level at which the curve reaches this share of T_max: h (share^p / (1 - share^p))^(1/p), per copy."""
    p = np.exp(thetas[:, 2])
    return np.asarray(np.exp(thetas[:, 1]) * (share**p / -np.expm1(p * np.log(share))) ** (1 / p))


def monotone_crossing(level: F64, logs: F64, goals: F64) -> F64:
    """First level at which the running maximum of each row (log T) reaches its goal, linear in the logarithms.

    (points,), (rows, points), (rows,) -> (rows,); infinity where the row stays below. A goal below the first
    point gives the first level.
    """
    rising = np.maximum.accumulate(logs, axis=1)
    reached = rising >= goals[:, None]
    position = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
    rows, before = np.arange(len(logs)), np.maximum(position - 1, 0)
    step = rising[rows, position] - rising[rows, before]
    share = np.where(step > 0, (goals - rising[rows, before]) / np.where(step > 0, step, 1), 0.0)
    x = np.log(level)
    found = np.exp(x[before] + np.clip(share, 0, 1) * (x[position] - x[before]))
    return np.asarray(np.where(position < 0, np.inf, np.where(position == 0, level[0], found)))

