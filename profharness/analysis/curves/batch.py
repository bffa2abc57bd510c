"""Throughput over batch size: T(b) = T_max b / (b^p + h^p)^(1/p), fitted in logarithms
(docs/metrics.md#batch-curve).

p = 1 is the hyperbola of a fixed cost plus a cost per item; a large p is a sharp corner at h, where
the asymptotes T_max b / h and T_max meet. The model serves for intervals and extrapolation; b90
comes from a monotone interpolation of the measured points. Pure functions; jumps are looked for in
`jumps`.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.curves.fit import Copies, CurveFit, Measured, interval_of, refit_copies
from profharness.analysis.curves.least_squares import Model
from profharness.analysis.curves.records import BatchCurve
from profharness.analysis.records import Estimate
from profharness.trace.model import F64, I64

P_LIMITS = (0.25, 30.0)
# Beyond these factors the data say nothing: an end of an interval that gets there is not bounded.
_T_FACTOR = 100.0
_H_FACTOR = 1000.0
_NEAR = 0.98
_STARTS_P = (0.6, 1.0, 1.6, 3.0, 8.0)


class BatchModel:
    """log T over log b; parameters log T_max, log h, log p, and with `step` the logarithm of a
    jump.
    """

    def __init__(self, level: F64, step: F64 | None = None) -> None:
        self.level = level
        self.log_level = np.log(level)
        self.step = step

    def __call__(self, theta: F64) -> tuple[F64, F64]:
        # Contiguous: on strided input numpy picks its exp by where the arrays lie, and last digits
        # would vary.
        p = np.exp(theta[:, 2].copy())[:, None]
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

    def take(self, rows: I64) -> BatchModel:
        """The model of these copies alone."""
        return self if self.step is None else BatchModel(self.level, self.step[rows])


class BatchFamily:
    """The curve of this module as a family of `curve_fit`."""

    parameters = 3

    def model(self, level: F64, step: F64 | None = None) -> Model:
        return BatchModel(level, step)

    def box(self, measured: Measured) -> tuple[F64, F64]:
        """Bounds of log T_max, log h, log p."""
        top, level = measured.throughput.max(), measured.level
        low = np.log([top / 2, level[0] / _H_FACTOR, P_LIMITS[0]])
        high = np.log([top * _T_FACTOR, level[-1] * _H_FACTOR, P_LIMITS[1]])
        return low, high

    def starts(self, measured: Measured) -> F64:
        """A grid over h and p with the T_max that suits each: (starts, 3)."""
        logs = np.log(measured.throughput)
        corners = np.linspace(np.log(measured.level[0]) - 1, np.log(measured.level[-1]) + 1, 7)
        grid = np.array([[0.0, h, np.log(p)] for h in corners for p in _STARTS_P])
        grid[:, 0] = (logs - BatchModel(measured.level)(grid)[0]).mean(axis=1)
        return grid


BATCH = BatchFamily()


def batch_curve(fit: CurveFit, seed: str) -> BatchCurve:
    """The parameters with 95 % intervals, and b90; values and ends that the data do not bound are
    None.
    """
    copies = refit_copies(fit, seed)
    high = np.exp(BATCH.box(fit.measured)[1])
    best, thetas = np.exp(fit.theta), np.exp(copies.theta)
    return BatchCurve(
        t_max=interval_of(best[0], thetas[:, 0], (0.0, _NEAR * high[0])),
        b_half=corner(fit, copies),
        p=_bend(float(best[2]), thetas[:, 2]),
        b90=_b90(fit, copies),
    )


def _bend(value: float, copies: F64) -> Estimate:
    """p, whose ends are open where copies reach the limits of the fit: a bend between two levels
    can be of any sharpness.
    """
    interval = interval_of(value, copies)
    low, high = interval.low, interval.high
    return Estimate(
        value=value,
        low=None if low is None or low < P_LIMITS[0] / _NEAR else low,
        high=None if high is None or high > P_LIMITS[1] * _NEAR else high,
    )


def corner(fit: CurveFit, copies: Copies) -> Estimate:
    """h, the level at which the two asymptotes meet."""
    low, high = np.exp(BATCH.box(fit.measured))
    return interval_of(
        float(np.exp(fit.theta[1])), np.exp(copies.theta[:, 1]), (low[1] / _NEAR, _NEAR * high[1])
    )


def _b90(fit: CurveFit, copies: Copies) -> Estimate:
    """Where 90 % of T_max is reached on the measured points; value and high are None when that is
    not in the scan.

    The interval also holds where the fitted curves cross, since the points between two levels are
    not measured.
    """
    level = fit.measured.level
    goal = np.array([np.log(0.9) + fit.theta[0]])
    value = float(monotone_crossing(level, np.log(fit.measured.throughput)[None, :], goal)[0])
    measured = interval_of(
        value, monotone_crossing(level, copies.logs, np.log(0.9) + copies.theta[:, 0])
    )
    modelled = interval_of(value, model_crossing(copies.theta, 0.9))
    lows = [end for end in (measured.low, modelled.low) if end is not None]
    low = min(*lows, float(level[-1]))
    if measured.value is None or measured.high is None:
        return Estimate(value=measured.value, low=low)
    return Estimate(value=value, low=low, high=max(measured.high, modelled.high or value))


def model_crossing(thetas: F64, share: float) -> F64:
    """Level at which the curve reaches this share of T_max: h share / (1 - share^p)^(1/p), per
    copy.
    """
    h, p = np.exp(thetas[:, 1:3].T.copy())
    return np.asarray(h * share / (-np.expm1(p * np.log(share))) ** (1 / p))


def monotone_crossing(level: F64, logs: F64, goals: F64) -> F64:
    """First level at which the running maximum of each row (log T) reaches its goal, linear in the
    logarithms.

    (points,), (rows, points), (rows,) -> (rows,); infinity where the row stays below. A goal below
    the first point gives the first level.
    """
    rising = np.maximum.accumulate(logs, axis=1)
    reached = rising >= goals[:, None]
    position = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
    rows, before = np.arange(len(logs)), np.maximum(position - 1, 0)
    rise = rising[rows, position] - rising[rows, before]
    share = np.where(rise > 0, (goals - rising[rows, before]) / np.where(rise > 0, rise, 1), 0.0)
    x = np.log(level)
    crossing = np.exp(x[before] + np.clip(share, 0, 1) * (x[position] - x[before]))
    return np.asarray(np.where(position < 0, np.inf, np.where(position == 0, level[0], crossing)))
