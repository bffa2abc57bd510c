"""Throughput and latency of one point from the durations of its trials
(docs/metrics.md#throughput).

Durations are integer nanoseconds; every mean of rates is shown beside the rate of the mean time,
since the two differ as soon as one trial is odd. Odd trials are named by `trial_findings`, never
dropped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.stats.bootstrap import (
    Z95,
    bootstrap_means,
    generator,
    percentile_interval,
    quantile_interval,
    student95,
)
from profharness.trace.model import F64, I64

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
SAMPLES_BEYOND = 10
FEWEST_STRETCHES, MOST_STRETCHES, TRIALS_PER_STRETCH = 5, 30, 4
_S = 1e9


@dataclass(frozen=True)
class Percentile:
    """A latency percentile in ns with its 95 % interval; `value_ns` is None when fewer than ten
    samples lie beyond it.
    """

    q: float
    value_ns: float | None
    needs: str = ""
    low_ns: float | None = None
    high_ns: float | None = None


@dataclass(frozen=True)
class TrialStats:
    """Figures of one point. Rates in items/s, times in ns; `sem`, `low`, `high` are None for a
    single trial.

    `throughput` is the mean of items/t over the trials, `rate_of_mean` all items over the summed
    time.
    """

    trials: int
    items: float
    throughput: float
    sem: float | None
    low: float | None
    high: float | None
    throughput_median: float
    rate_of_mean: float
    consistency: float
    consistency_sem: float | None
    latency_mean_ns: float
    latency_median_ns: float
    latency_std_ns: float | None
    latency_low_ns: float | None
    latency_high_ns: float | None
    percentiles: tuple[Percentile, ...]

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval of the throughput, relative to it."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.throughput


def summarise_trials(
    durations_ns: npt.ArrayLike, items: npt.ArrayLike, seed: str = ""
) -> TrialStats:
    """Statistics of the trials of one point; `items` is one number or one per trial.

    The 95 % interval is a block bootstrap seeded by `seed`. Raises ValueError without trials, or
    for a duration or a number of items that is not positive.
    """
    times = np.asarray(durations_ns, np.int64).astype(np.float64)
    counts = np.broadcast_to(np.asarray(items, np.float64), times.shape)
    if not times.size:
        raise ValueError("no trials")
    if times.min() <= 0 or counts.min() <= 0:
        raise ValueError("durations and items must be positive")
    rates = counts / times * _S
    sem = low = high = consistency_sem = std = fast = slow = None
    if times.size > 1:
        sem = float(rates.std(ddof=1) / math.sqrt(times.size))
        std = float(times.std(ddof=1))
        replicates = bootstrap_means(
            np.stack([rates, times, counts]), generator("trials", seed, times.size)
        )
        low, high = percentile_interval(replicates[0])
        low = max(low, 0.0)
        fast, slow = percentile_interval(replicates[1])
        consistency_sem = float((replicates[0] * replicates[1] / replicates[2]).std() / _S)
    return TrialStats(
        trials=int(times.size),
        items=float(counts.mean()),
        throughput=float(rates.mean()),
        sem=sem,
        low=low,
        high=high,
        throughput_median=float(np.median(rates)),
        rate_of_mean=float(counts.sum() / times.sum() * _S),
        consistency=_consistency(rates, times, counts),
        consistency_sem=consistency_sem,
        latency_mean_ns=float(times.mean()),
        latency_median_ns=float(np.median(times)),
        latency_std_ns=std,
        latency_low_ns=fast,
        latency_high_ns=slow,
        percentiles=latency_percentiles(
            times, independent=_independent(times.size, std, fast, slow)
        ),
    )


def _consistency(rates: F64, times: F64, counts: F64) -> float:
    """mean(s/t) * mean(t) / s: never below 1 for serial trials of one size (Jensen), 1 for equal
    ones.
    """
    if (times == times[0]).all() and (counts == counts[0]).all():
        return 1.0
    return float(rates.mean() * times.mean() / counts.mean() / _S)


def _independent(count: int, std: float | None, low: float | None, high: float | None) -> float:
    """The share of the trials that tell as much as independent ones would: neighbours may resemble
    each other. At most 1.
    """
    if not std or low is None or high is None or high <= low:
        return 1.0
    return min(1.0, (2 * Z95 * std / (high - low)) ** 2 / count)


def latency_percentiles(
    times: F64, wanted: tuple[float, ...] = PERCENTILES, independent: float = 1.0
) -> tuple[Percentile, ...]:
    """Percentiles that at least ten samples lie beyond; the others say how many trials they need.
    `independent` is that of `quantile_interval`.
    """
    found, ordered = [], np.sort(times)
    for q in wanted:
        needed = math.ceil(SAMPLES_BEYOND / (1 - q / 100) - 1e-6)
        if times.size >= needed:
            low, high = quantile_interval(ordered, q / 100, independent)
            found.append(Percentile(q, float(np.percentile(times, q)), low_ns=low, high_ns=high))
        else:
            found.append(Percentile(q, None, f"more trials (at least {needed})"))
    return tuple(found)


@dataclass(frozen=True)
class CommonWindow:
    """Throughput of several processes over the time in which all of them worked, and the sum of
    each one's own.

    `own` holds each process's rate over its own time (items/s). The 95 % interval is None where too
    few trials ended.
    """

    window_ns: int
    items: int
    throughput: float
    summed: float
    processes: int
    own: tuple[float, ...] = ()
    sem: float | None = None

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return None if self.sem is None else max(0.0, self.throughput - Z95 * self.sem)

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return None if self.sem is None else self.throughput + Z95 * self.sem

    @property
    def spread(self) -> float:
        """The fastest process over the slowest, less 1."""
        return max(self.own) / min(self.own) - 1 if self.own else 0.0


def common_window(starts_ns: I64, durations_ns: I64, items: I64, owner: I64) -> CommonWindow | None:
    """Items that finished inside the common window of all owners, over its length
    (docs/metrics.md#several-processes).

    The window opens when the last process has started and closes when the first one has ended; None
    when they never worked at the same time.
    """
    owners = np.unique(owner)
    ends = starts_ns + durations_ns
    spans = [
        (
            int(starts_ns[owner == one].min()),
            int(ends[owner == one].max()),
            int(items[owner == one].sum()),
        )
        for one in owners
    ]
    opens, closes = max(s for s, _, _ in spans), min(e for _, e, _ in spans)
    if closes <= opens:
        return None
    inside = (ends > opens) & (ends <= closes)
    done = int(items[inside].sum())
    own = tuple(count / (end - start) * _S for start, end, count in spans)
    sem = _stretch_sem(ends[inside] - opens, items[inside], closes - opens, len(owners))
    return CommonWindow(
        closes - opens, done, done / (closes - opens) * _S, sum(own), len(owners), own, sem
    )


def _stretch_sem(ends_ns: I64, items: I64, window_ns: int, processes: int) -> float | None:
    """Standard error of the common rate from equal stretches of the window (batch means), stretched
    for their small number.

    Each stretch holds several trials of every process, since whole trials are counted where they
    end.
    """
    stretches = min(MOST_STRETCHES, len(ends_ns) // (TRIALS_PER_STRETCH * processes))
    if stretches < FEWEST_STRETCHES:
        return None
    place = np.clip((ends_ns - 1) * stretches // window_ns, 0, stretches - 1)
    rates = np.bincount(place, items.astype(np.float64), stretches) / (window_ns / stretches) * _S
    return float(rates.std(ddof=1) / math.sqrt(stretches) * student95(stretches - 1) / Z95)


@dataclass(frozen=True)
class Drift:
    """How far repeated points moved: the largest relative change of throughput, and that beyond
    chance.
    """

    relative: float
    significant: bool
    point: str = ""


NO_DRIFT = Drift(0.0, significant=False)


def drift_between(first: TrialStats, repeat: TrialStats, point: str = "") -> Drift:
    """Relative change of the mean throughput from the first measurement to the repeat.

    Significant when it exceeds both 1 % and the two intervals' combined half-width.
    """
    change = repeat.throughput / first.throughput - 1
    widths = [stats.relative_half_width for stats in (first, repeat)]
    noise = math.hypot(*(width or 0.0 for width in widths))
    known = all(width is not None for width in widths)
    return Drift(change, significant=known and abs(change) > max(0.01, noise), point=point)


def largest_drift(drifts: list[Drift]) -> Drift:
    """The one that widens the intervals; no drift where nothing was repeated."""
    return max(drifts, key=lambda drift: abs(drift.relative), default=NO_DRIFT)


def widened(stats: TrialStats, drift: Drift) -> tuple[float | None, float | None]:
    """The throughput's interval with the drift of the repeated points on both sides."""
    if stats.low is None or stats.high is None:
        return None, None
    margin = abs(drift.relative) * stats.throughput
    return max(stats.low - margin, 0.0), stats.high + margin


def sem_ms(trials_ms: Sequence[float]) -> float | None:
    """Standard error of the mean of durations in ms; None for fewer than two."""
    if len(trials_ms) < 2:
        return None
    return float(np.std(trials_ms, ddof=1) / np.sqrt(len(trials_ms)))
