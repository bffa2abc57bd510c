"""Throughput over concurrency: the Universal Scalability Law (Gunther), and where its throughput
peaks.

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). Contention sigma may be negative, since
batching makes clients help each other; coherency kappa is not. Fitted in logarithms
(docs/metrics.md#usl).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from profharness.analysis.curves.fit import Copies, CurveFit, Measured, interval_of
from profharness.analysis.curves.least_squares import Model
from profharness.analysis.curves.records import Usl
from profharness.analysis.records import Estimate
from profharness.stats.bootstrap import Z95, student95
from profharness.trace.model import F64, I64

_SMALLEST = 1e-6
_SIGMA_LIMIT = 1e3
_KAPPA_LIMIT = 1e3
_LAMBDA_FACTOR = 1e3
_KAPPA_ZERO = 1e-12
_LEAST_DROP, _SIGMAS_DROP = 1e-3, 3.0
_SIGMAS = (-0.5, 0.0, 0.02, 0.1, 0.5)


class UslModel:
    """log X over N; parameters log lambda, sigma, kappa, and with `step` the logarithm of a
    jump.
    """

    def __init__(self, level: F64, step: F64 | None = None) -> None:
        self.level = level
        self.step = step

    def __call__(self, theta: F64) -> tuple[F64, F64]:
        n = self.level
        load = np.maximum(1 + theta[:, 1:2] * (n - 1) + theta[:, 2:3] * n * (n - 1), _SMALLEST)
        values = theta[:, 0:1] + np.log(n) - np.log(load)
        slopes = [np.ones_like(values), -(n - 1) / load, -n * (n - 1) / load]
        if self.step is not None:
            values = values + theta[:, 3:4] * self.step
            slopes.append(np.broadcast_to(self.step, values.shape))
        return values, np.stack(slopes, axis=2)

    def take(self, rows: I64) -> UslModel:
        """The model of these copies alone."""
        return self if self.step is None else UslModel(self.level, self.step[rows])


class UslFamily:
    """The law as a family of `curve_fit`."""

    parameters = 3

    def model(self, level: F64, step: F64 | None = None) -> Model:
        return UslModel(level, step)

    def box(self, measured: Measured) -> tuple[F64, F64]:
        """Bounds of log lambda, sigma, kappa; with the smallest sigma and no kappa the load is
        still positive.
        """
        per_client = measured.throughput / measured.level
        widest = max(float(measured.level[-1]) - 1, 1.0)
        low = np.array(
            [
                np.log(per_client.min() / _LAMBDA_FACTOR),
                -(1 - 1e-3) / widest if widest > 1 else 0.0,
                0.0,
            ]
        )
        low[1] = min(low[1], -0.999)
        return low, np.array(
            [np.log(per_client.max() * _LAMBDA_FACTOR), _SIGMA_LIMIT, _KAPPA_LIMIT]
        )

    def starts(self, measured: Measured) -> F64:
        """A grid over sigma and kappa with the lambda that suits each, and the linear fit of N / X:
        (starts, 3).
        """
        n, x = measured.level, measured.throughput
        widest = float(n[-1])
        kappas = np.array([0.0, 0.1, 1.0, 10.0]) / widest**2
        grid = np.array([[0.0, max(s, -0.9 / widest), k] for s in _SIGMAS for k in kappas])
        grid[:, 0] = (np.log(x) - UslModel(n)(grid)[0]).mean(axis=1)
        design = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1) * (x / n)[:, None]
        a, b, c = np.linalg.lstsq(design, np.ones_like(n), rcond=None)[0]
        return np.vstack([grid, [-np.log(a), b / a, max(c / a, 0.0)]]) if a > 0 else grid


USL = UslFamily()


def peaks(thetas: F64) -> F64:
    """N* = sqrt((1 - sigma) / kappa) per copy; infinity without coherency cost, at least 1."""
    sigma, kappa = thetas[:, 1], thetas[:, 2]
    square = np.maximum(1 - sigma, 0) / np.maximum(kappa, _KAPPA_ZERO)
    return np.asarray(np.where(kappa <= _KAPPA_ZERO, np.inf, np.maximum(np.sqrt(square), 1.0)))


def fall_observed(fit: CurveFit) -> bool:
    """Whether the series itself comes down: the last level is below the best one beyond the noise
    that the levels show, and the law peaks inside the scan.

    A plateau's last level is always a little below or above its best one, and the best of several
    equal levels is one that noise raised.
    """
    inside = float(peaks(fit.theta[None, :])[0]) < fit.measured.level[-1]
    best = int(fit.measured.throughput.argmax())
    drop = -math.log(fit.measured.throughput[-1] / fit.measured.throughput[best])
    sigmas = _SIGMAS_DROP * (student95(fit.freedom) / Z95 if fit.estimated else 1.0)
    noise = math.hypot(fit.sigma[best], fit.sigma[-1])
    return inside and drop > max(_LEAST_DROP, sigmas * noise)


def usl_law(fit: CurveFit, copies: Copies, odd: tuple[CurveFit, Copies] | None = None) -> Usl:
    """The law with 95 % intervals. Where the data prove no fall, the peak has neither a value nor
    an upper end; that it is beyond the largest level is not proven either, so that its low end is
    that of the fitted laws, at most the largest level measured.

    `odd` is the law without a level that may be odd, which the peak's interval holds too.
    """
    lambdas = np.exp(copies.theta[:, 0].copy())
    low, high = USL.box(fit.measured)
    peak = _peak(fit, copies)
    if odd is not None:
        other = _peak(*odd)
        peak = Estimate(
            value=peak.value,
            low=_outer(min, peak.low, other.low),
            high=_outer(max, peak.high, other.high),
        )
    return Usl(
        lambda_=interval_of(
            float(np.exp(fit.theta[0])),
            lambdas,
            (float(np.exp(low[0])) * 1.02, float(np.exp(high[0])) * 0.98),
        ),
        sigma=interval_of(float(fit.theta[1]), copies.theta[:, 1]),
        kappa=interval_of(float(fit.theta[2]), copies.theta[:, 2]),
        n_peak=peak,
    )


def _peak(fit: CurveFit, copies: Copies) -> Estimate:
    top = float(fit.measured.level[-1])
    # Far beyond the scan a peak is a guess, not a bound.
    found = interval_of(float(peaks(fit.theta[None, :])[0]), peaks(copies.theta), (0.0, 10 * top))
    if fall_observed(fit):
        return found
    return Estimate(value=None, low=top if found.low is None else min(found.low, top))


def _outer(
    furthest: Callable[[float, float], float], one: float | None, other: float | None
) -> float | None:
    return None if one is None or other is None else furthest(one, other)
