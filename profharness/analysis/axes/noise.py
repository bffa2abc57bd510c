"""The noise of executions: how much the rate of one scatters around its point and its round
(docs/metrics.md#axes). Pure; all in natural logarithms of rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import Z95, student95
from profharness.trace.model import F64, I64

_ENOUGH = 3
"""Degrees of freedom from which repeats tell the noise by themselves: it has all parts in it."""


@dataclass(frozen=True, eq=False)
class Executions:
    """One row per execution that counted: the index of its point, its round, log of its rate."""

    point: I64
    round: I64
    log_rate: F64


@dataclass(frozen=True, eq=False)
class PointMeans:
    """By point: the mean of the logarithms with the rounds taken off, and the number of executions.

    `sigma` is the scatter of one execution with `freedom` degrees of freedom; None where nothing
    was repeated. `within` is the standard error of each mean as the levels of a server tell it
    themselves, from their parts; None where nothing does.
    """

    mean: F64
    count: I64
    sigma: float | None = None
    freedom: int = 0
    within: F64 | None = None

    def half_width(self, point: int) -> float | None:
        """Half of the 95 % interval of a point's mean, in logarithms: of the repeats; where there
        are few, at least what the levels themselves tell.
        """
        return max(
            (
                error * (Z95 if math.isinf(freedom) else student95(round(freedom)))
                for error, freedom in _errors(self, point)
            ),
            default=None,
        )


def point_means(executions: Executions, points: int) -> PointMeans:
    """The means of `points` points, of which each has one execution at least.

    Rounds are estimated from the points that were repeated, by alternating projections (exact after
    one round for a design without gaps).
    """
    count = np.bincount(executions.point, minlength=points)
    rounds = np.unique(executions.round, return_inverse=True)[1]
    effect = np.zeros(len(executions.log_rate))
    repeated = count[executions.point] > 1
    means = np.zeros(points)
    for _ in range(20):
        means = np.bincount(executions.point, executions.log_rate - effect, points) / count
        rest = np.where(repeated, executions.log_rate - means[executions.point], 0.0)
        of_round = np.bincount(rounds, rest) / np.maximum(np.bincount(rounds, repeated), 1)
        change = of_round[rounds] - effect
        effect = of_round[rounds]
        if not np.any(np.abs(change) > 1e-12):
            break
    seen = len(np.unique(rounds[repeated]))
    freedom = int(repeated.sum()) - int((count > 1).sum()) - max(seen - 1, 0)
    if freedom < 1:
        return PointMeans(means, count)
    residual = executions.log_rate - effect - means[executions.point]
    return PointMeans(
        means, count, math.sqrt(float((residual[repeated] ** 2).sum()) / freedom), freedom
    )


def unproven(means: PointMeans, best: int, others: Sequence[int]) -> list[int]:
    """Of the other points those that are not proven worse than the best one. Empty where nothing
    tells the noise.

    Tukey and Kramer's comparison of all pairs (Kramer 1956, Biometrics 12): the best was chosen
    because it looked best, so that in one of 20 scans of points that are all alike any of them may
    be called worse.
    """
    errors = [*_errors(means, best)]
    if not errors or not others:
        return []
    from scipy.stats import studentized_range  # a second, for scans over axes alone

    count = len(others) + 1
    ranges = [float(studentized_range.ppf(0.95, count, freedom)) for _, freedom in errors]
    found = []
    for other in others:
        least = max(
            wide / math.sqrt(2) * math.hypot(mine, theirs)
            for wide, (mine, _), (theirs, _) in zip(
                ranges, errors, _errors(means, other), strict=True
            )
        )
        if means.mean[best] - means.mean[other] <= least:
            found.append(other)
    return found


def _errors(means: PointMeans, point: int) -> Iterator[tuple[float, float]]:
    """The standard errors of a point's mean with their degrees of freedom: of the repeats, and of
    the levels by themselves.
    """
    if means.sigma is not None:
        yield means.sigma / math.sqrt(float(means.count[point])), float(means.freedom)
    if means.within is not None and means.freedom < _ENOUGH:
        yield float(means.within[point]), math.inf
