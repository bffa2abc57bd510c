"""The noise of executions: how much the rate of one scatters around its point and its round
(docs/metrics.md#axes). Pure; all in natural logarithms of rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import student95
from profharness.trace.model import F64, I64


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
    was repeated.
    """

    mean: F64
    count: I64
    sigma: float | None = None
    freedom: int = 0

    def half_width(self, point: int) -> float | None:
        """Half of the 95 % interval of a point's mean, in logarithms."""
        if self.sigma is None:
            return None
        return student95(self.freedom) * self.sigma / math.sqrt(float(self.count[point]))


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
