"""Jumps of throughput between two levels: a kernel switch or a transport limit, not a property of the curve.

The curve with a jump at each inner level is tried against the curve without; the largest gain is judged
against its own distribution on simulated smooth curves, so that choosing the best place costs what it should.
A jump must also stand out from both neighbouring intervals: a smooth bend that the model misses does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from profharness.analysis.bootstrap import generator
from profharness.analysis.curve_fit import CurveFit, Measured
from profharness.analysis.fitting import least_squares
from profharness.analysis.records import StepChange
from profharness.trace.model import F64

SIMULATIONS = 300
FEWEST_LEVELS = 7
# The test's two statistics share a level of 4 %.
_LEVEL = 0.02
_SMALLEST = math.log(1.15)
_LARGEST = math.log(20.0)
_EDGE = 2
# What a three-parameter curve may miss of a real, smooth series without that being a jump.
_MODEL_ERROR = 0.01
_LOCAL_SHARE = 0.3
# Chance alone exceeds these in every second series or so: no simulation is needed below them.
_NEVER_KNOWN, _NEVER_RELATIVE = 3.0, 4.0
_SIGMAS = 3.0


@dataclass(frozen=True)
class _Gains:
    """Per copy: sum of squares without and with the best jump, its candidate and its logarithm."""

    without: F64
    best: F64
    candidate: F64
    jump: F64

    def known(self) -> F64:
        return np.asarray(self.without - self.best)

    def relative(self, freedom: int) -> F64:
        return np.asarray((self.without - self.best) / np.maximum(self.best / freedom, 1e-300))


def find_step(fit: CurveFit, seed: str) -> StepChange | None:
    """The largest significant jump of at least 15 % over the trend, at the first level after it.

    Needs seven levels, and two on either side of the jump; with fewer see `impossible_rise`.
    """
    measured = fit.measured
    if len(measured.level) < FEWEST_LEVELS:
        return None
    sigma = np.hypot(measured.error, _MODEL_ERROR) if measured.errors_known else np.full(len(measured.level), _typical(fit))
    candidates = _candidates(measured)
    logs = np.log(measured.throughput)
    seen = _gains(fit, logs[None, :], fit.theta[None, :], sigma, candidates)
    jump, position = float(seen.jump[0]), _EDGE + int(seen.candidate[0])
    if abs(jump) < _SMALLEST or not stands_out(measured, position, jump):
        return None
    freedom = len(logs) - fit.theta.size - 1
    if seen.known()[0] < _NEVER_KNOWN and seen.relative(freedom)[0] < _NEVER_RELATIVE:
        return None
    noise = generator("step", seed).standard_normal((SIMULATIONS, len(logs))) * sigma
    chance = _gains(fit, fit.values + noise, np.repeat(fit.theta[None, :], SIMULATIONS, axis=0), sigma, candidates)
    # Known errors decide only where the curve with the jump agrees with them (97.5 % point of chi-square, Wilson-Hilferty).
    agrees = seen.best[0] < freedom * (1 - 2 / (9 * freedom) + 1.96 * math.sqrt(2 / (9 * freedom))) ** 3
    by_errors = measured.errors_known and agrees and seen.known()[0] > np.quantile(chance.known(), 1 - _LEVEL)
    by_scatter = seen.relative(freedom)[0] > np.quantile(chance.relative(freedom), 1 - _LEVEL)
    if not (by_errors or by_scatter):
        return None
    return StepChange(at=float(measured.level[position]), ratio=math.exp(jump))


def _typical(fit: CurveFit) -> float:
    """One size of noise for all points; the relative statistic does not depend on it."""
    return float(max(np.sqrt(np.mean(fit.sigma**2)), 1e-6))


def _candidates(measured: Measured) -> F64:
    """(candidates, points): 0 before and 1 from each inner level on."""
    points = len(measured.level)
    return np.array([np.arange(points) >= at for at in range(_EDGE, points - _EDGE + 1)], np.float64)


def _gains(fit: CurveFit, logs: F64, theta: F64, sigma: F64, candidates: F64) -> _Gains:
    """Fit every copy (copies, points) without a jump and with one at each candidate."""
    copies, places = len(logs), len(candidates)
    family, level = fit.family, fit.measured.level
    low, high = family.box(fit.measured)
    weight = 1 / sigma**2
    smooth = least_squares(family.model(level), theta, logs, weight, (low, high))
    wide = (np.append(low, -_LARGEST), np.append(high, _LARGEST))
    masks = np.tile(candidates, (copies, 1))
    start = np.hstack([np.repeat(smooth.theta, places, axis=0), np.zeros((copies * places, 1))])
    jumps = least_squares(family.model(level, masks), start, np.repeat(logs, places, axis=0), weight, wide)
    squares = jumps.squares.reshape(copies, places)
    chosen = squares.argmin(axis=1)
    rows = np.arange(copies)
    return _Gains(smooth.squares, np.minimum(squares[rows, chosen], smooth.squares), chosen.astype(np.float64),
                  jumps.theta[:, -1].reshape(copies, places)[rows, chosen])


def stands_out(measured: Measured, position: int, jump: float) -> bool:
    """Whether log T changes into `position` by more (or, downwards, less) than the slopes on both sides explain."""
    x, y = np.log(measured.level), np.log(measured.throughput)
    slopes = np.diff(y) / np.diff(x)
    around = [slopes[i] for i in (position - 2, position) if 0 <= i < len(slopes)]
    trend = max(around) if jump > 0 else min(around)
    excess = (slopes[position - 1] - trend) * (x[position] - x[position - 1])
    return bool(excess > _LOCAL_SHARE * jump if jump > 0 else excess < _LOCAL_SHARE * jump)


def impossible_rise(measured: Measured) -> StepChange | None:
    """Over batch sizes: throughput that grows by at least 15 % more than the batch, which no fixed kernel gives.

    A batch that holds another takes at least as long, so T(b) / b cannot rise; for scans too short to fit.
    """
    if len(measured.level) < 2 or not measured.errors_known:
        return None
    logs = np.log(measured.throughput / measured.level)
    rise = np.diff(logs)
    error = np.hypot(measured.error[1:], measured.error[:-1])
    best = int(rise.argmax())
    if rise[best] < max(_SMALLEST, _SIGMAS * error[best]):
        return None
    return StepChange(at=float(measured.level[best + 1]), ratio=float(math.exp(rise[best])))
