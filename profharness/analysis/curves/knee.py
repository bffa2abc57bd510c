"""Where adding clients stops paying: N_knee = X_max / lambda, and how many jobs a device carries
(docs/metrics.md#knee).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from profharness.analysis.curves.batch import corner
from profharness.analysis.curves.fit import (
    Copies,
    CurveFit,
    Measured,
    interval_of,
)
from profharness.analysis.curves.records import Knee, Series
from profharness.analysis.curves.usl import UslFamily, peaks
from profharness.analysis.records import Estimate
from profharness.stats.bootstrap import Z95
from profharness.trace.model import F64

MARGIN = 0.09
SAME = 0.05
NO_PLAN = "the intervals of all levels overlap: measure longer, or where nothing else runs"
# A series that still grows by more than the square root of its level has no plateau to take X_max
# from.
_RISING = 0.5


def knee_of_law(fit: CurveFit, copies: Copies) -> Knee:
    """X_max / lambda with X_max the law's highest throughput inside the scan (its peak, or the
    largest level).
    """
    top = float(fit.measured.level[-1])
    value = float(_reach(fit.theta[None, :], top)[0])
    return _knee(interval_of(value, _reach(copies.theta, top)), still_rising(fit))


def widened(knee: Knee, likely: Sequence[tuple[CurveFit, Copies]], top: float) -> Knee:
    """The knee with an interval that also holds what the other `likely` curves through the same
    levels say: which of them is true, and which level is odd, few levels do not tell.
    """
    low, high = knee.low, knee.high
    for fit, copies in likely:
        ends = _ends(fit, copies, top)
        low = None if low is None else min(low, ends[0])
        high = None if high is None else max(high, ends[1])
    return Knee(n=knee.n, low=low, high=high)


def _ends(fit: CurveFit, copies: Copies, top: float) -> tuple[float, float]:
    """The interval of the highest throughput up to `top` over that of one client."""
    thetas = np.vstack([fit.theta[None, :], copies.theta])
    if isinstance(fit.family, UslFamily):
        reach = _reach(thetas, top)
    else:
        values = fit.family.model(np.array([1.0, top]))(thetas)[0]
        reach = np.exp(values[:, 1] - values[:, 0])
    ends = interval_of(float(reach[0]), reach[1:])
    return float(ends.low or 0.0), float(ends.high or math.inf)


def _reach(thetas: F64, top: float) -> F64:
    """X_max / lambda per copy."""
    best = np.minimum(peaks(thetas), top)[:, None]
    load = np.maximum(1 + thetas[:, 1:2] * (best - 1) + thetas[:, 2:3] * best * (best - 1), 1e-6)
    return np.asarray((best / load)[:, 0])


def knee_of_asymptotes(fit: CurveFit, copies: Copies) -> Knee:
    """Where the asymptotes of the curve of `curves` meet: X_max / lambda is its corner h."""
    return _knee(corner(fit, copies), still_rising(fit))


def knee_of_points(measured: Measured) -> Knee:
    """Highest throughput over the throughput per client of the smallest level, for series that no
    curve describes.
    """
    best = int(measured.throughput.argmax())
    value = float(measured.throughput[best] / measured.throughput[0] * measured.level[0])
    if not measured.errors_known:
        return Knee(n=value)
    width = Z95 * math.hypot(measured.error[best], measured.error[0])
    return Knee(n=value, low=value * math.exp(-width), high=value * math.exp(width))


def still_rising(fit: CurveFit) -> bool:
    """Whether the fitted throughput grows faster than the square root of the level at the end of
    the scan.
    """
    top = fit.measured.level[-1]
    near: Any = np.array([top / 1.01, top])
    values = fit.family.model(near)(fit.theta[None, :])[0][0]
    return bool((values[1] - values[0]) / math.log(1.01) > _RISING)


def _knee(estimate: Estimate, rising: bool) -> Knee:
    if rising:
        return Knee(n=None, low=estimate.low)
    return Knee(n=estimate.value, low=estimate.low, high=estimate.high)


def jobs_per_device(knee: Knee, margin: float = MARGIN) -> int | None:
    """The nearest integer to knee * (1 - margin), rounded down where that is above the knee; at
    least 1, and None without a knee.
    """
    if knee.n is None:
        return None
    wanted = knee.n * (1 - margin)
    nearest = math.floor(wanted + 0.5)
    return max(1, nearest if nearest <= knee.n else math.floor(wanted))


def told_apart(throughput: F64, low: F64, high: F64) -> bool:
    """Whether the levels say anything about the knee: one of them is proven slower than the best
    one, or all are proven to be the same within 5 %. Levels without an interval say nothing here.
    """
    known = np.isfinite(low) & np.isfinite(high)
    if known.sum() < 2:
        return True
    rate, first, last = throughput[known], low[known], high[known]
    best = int(rate.argmax())
    same = (first >= (1 - SAME) * rate[best]) & (last <= rate[best] / (1 - SAME))
    return bool((last < first[best]).any() or same.all())


def in_jobs(knee: Knee, clients_per_job: int) -> Knee:
    """A knee in clients as one in jobs, each of which keeps so many requests in flight."""
    return Knee(
        **{
            name: None if value is None else value / clients_per_job
            for name, value in (("n", knee.n), ("low", knee.low), ("high", knee.high))
        }
    )


def devices_for(jobs: int, knee: Knee, margin: float = MARGIN) -> Estimate:
    """Devices that carry `jobs` jobs: ceil(jobs / jobs per device); the interval from the knee's,
    ends swapped.
    """

    def needed(end: float | None) -> int | None:
        per_device = None if end is None else jobs_per_device(Knee(n=end), margin)
        return None if per_device is None else math.ceil(jobs / per_device)

    return Estimate(value=needed(knee.n), low=needed(knee.high), high=needed(knee.low))


def devices_of(series: Series, jobs: int) -> Estimate | None:
    """Devices that carry `jobs` jobs by the series' knee, without a value where its levels allow no
    plan; None for a series over the batch size.
    """
    if series.axis == "batch_size":
        return None
    if series.no_plan:
        return Estimate(value=None)
    return devices_for(jobs, in_jobs(series.knee or Knee(n=None), series.clients_per_job))
