"""The figures of one level of load on a server, from its requests alone
(docs/metrics.md#served-load).

A request counts in the window in which its answer came. Service latency is done - sent; corrected
latency is done - intended, which does not forgive a generator that waits for a slow server before
it sends (coordinated omission). Nothing is dropped here: what is wrong with a level is said by
`load_findings`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.rundir.levels import Level
from profharness.stats.bootstrap import (
    bootstrap_means,
    generator,
    percentile_interval,
    quantile_interval,
    student95,
)
from profharness.stats.estimate import Estimate
from profharness.stats.load_figures import (
    PERCENTILES,
    SECOND_NS,
    Generator,
    Latency,
    LatencyPercentile,
    LevelFigures,
    Little,
    Trend,
)
from profharness.stats.load_parts import batches, parts
from profharness.stats.throughput import SAMPLES_BEYOND
from profharness.trace.model import F64, I64, Requests

LITTLE_TOLERANCE = 0.02
LATE_NS, LATE_SHARE = 1_000_000, 0.05
FEWEST_BATCHES, MOST_BATCHES, PER_BATCH = 5, 30, 5


@dataclass(frozen=True, eq=False)
class _Window:
    """A level's requests and which of them belong to its window."""

    all: Requests
    level: Level

    @property
    def start(self) -> int:
        return self.level.window_start_ns

    @property
    def end(self) -> int:
        return self.level.window_end_ns

    @cached_property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Answered or failed in the window."""
        done = self.all.done_ns
        return np.asarray((done > self.start) & (done <= self.end) & (self.all.ok >= 0))

    @cached_property
    def answered(self) -> Requests:
        """In the order of their answers."""
        found = self.all.take(self.ended & (self.all.ok == 1))
        return found.take(np.argsort(found.done_ns, kind="stable"))

    @cached_property
    def meant(self) -> npt.NDArray[np.bool_]:
        """Meant to be sent in the window."""
        return np.asarray((self.all.intended_ns >= self.start) & (self.all.intended_ns < self.end))

    def overlap_ns(self, starts: I64, ends: I64) -> float:
        """Summed time inside the window."""
        inside = np.minimum(ends, self.end) - np.maximum(starts, self.start)
        return float(np.maximum(inside, 0).sum())


def level_figures(requests: Requests, level: Level) -> LevelFigures:
    """Figures of a level; `requests` are all of it, warm-up included. Raises ValueError for a
    window without length.
    """
    if level.window_ns <= 0:
        raise ValueError("the window has no length")
    window = _Window(requests, level)
    answered = window.answered
    failed = int(window.ended.sum()) - len(answered)
    throughput, sem = _throughput(window)
    think = _thinking(window)
    service = _latency(answered.done_ns - answered.sent_ns, "service", level)
    corrected = _latency(answered.done_ns - answered.intended_ns, "corrected", level)
    offered = int(window.meant.sum())
    return LevelFigures(
        level=level,
        requests=len(answered),
        failed=failed,
        items=int(answered.items.sum()),
        throughput=throughput,
        throughput_sem=sem,
        request_rate=len(answered) / level.window_ns * SECOND_NS,
        service=service,
        corrected=corrected,
        think_ns=think,
        little=_little(window),
        generator=_generator(window, think),
        offered=offered,
        rate_reached=len(answered) / offered if level.mode == "open" and offered else None,
        trend=_trend(window),
        batches=batches(level),
        parts=parts(answered, level),
    )


def _slices(count: int) -> int:
    """Into how many stretches of equal length the window is cut, so that each holds some requests;
    0 for too few.
    """
    slices = min(MOST_BATCHES, count // PER_BATCH)
    return slices if slices >= FEWEST_BATCHES else 0


def _place(window: _Window, done: I64, slices: int) -> I64:
    at = (done - window.start) * slices // max(1, window.end - window.start)
    return np.clip(at, 0, slices - 1).astype(np.int64)


def _throughput(window: _Window) -> tuple[Estimate, float | None]:
    """Items per second with an interval from batch means (Law and Kelton) of equal stretches."""
    answered = window.answered
    seconds = (window.end - window.start) / SECOND_NS
    value = float(answered.items.sum()) / seconds
    slices = _slices(len(answered))
    if not slices:
        return Estimate(value=value), None
    sums = np.bincount(
        _place(window, answered.done_ns, slices), answered.items.astype(np.float64), slices
    )
    sem = max(_error_of_mean(sums / (seconds / slices)), value * _CUT / len(answered))
    half = student95(slices - 1) * sem
    return Estimate(value=value, low=max(0.0, value - half), high=value + half), sem


# each end of the window cuts a gap between two answers anywhere: the count is off by the difference
# of two parts of a request
_CUT = math.sqrt(1 / 6)


def _error_of_mean(rates: F64) -> float:
    """Standard error of the mean of successive stretches.

    Answers that come evenly or in bursts fall on either side of a stretch's end: what one lacks its
    neighbour has, which cancels in the mean. Stretches that alternate beyond chance (lag-1
    autocorrelation below minus two standard errors, Bartlett 1946) are therefore not taken as
    independent: Var(mean) = (g0 + 2 g1) / n, and at least g0 / n^2, for the two ends that are left.
    """
    n = len(rates)
    apart = rates - rates.mean()
    variance = float(apart @ apart) / (n - 1)
    lag = float(apart[1:] @ apart[:-1]) / (n - 1)
    if variance and lag / variance < -2 / math.sqrt(n):
        variance = max(variance + 2 * lag, variance / n)
    return math.sqrt(variance / n)


def _latency(times: I64, kind: str, level: Level) -> Latency | None:
    if not len(times):
        return None
    values = times.astype(np.float64)
    if len(values) < 2:
        return Latency(Estimate(value=float(values[0])), None, _percentiles(values, 1.0))
    replicates = bootstrap_means(
        values[None, :], generator("level", kind, level.window_start_ns, len(values))
    )[0]
    low, high = percentile_interval(replicates)
    alone = float(values.var(ddof=1)) / len(values)
    together = float(replicates.var())
    # requests that follow each other share a queue: so many independent ones tell as much about the
    # mean
    share = min(1.0, alone / together) if together > 0 else 1.0
    return Latency(
        Estimate(value=float(values.mean()), low=max(low, 0.0), high=high),
        float(values.std(ddof=1)),
        _percentiles(values, share),
    )


def _percentiles(values: F64, independent: float) -> tuple[LatencyPercentile, ...]:
    """Percentiles with order-statistic intervals, `independent` the share that counts as such."""
    ordered = np.sort(values)
    found = []
    for q in PERCENTILES:
        needed = math.ceil(SAMPLES_BEYOND / (1 - q / 100) - 1e-6)
        if len(ordered) < needed:
            found.append(LatencyPercentile(q, None, needs=f"more requests (at least {needed})"))
            continue
        found.append(
            LatencyPercentile(
                q,
                float(np.percentile(ordered, q)),
                *quantile_interval(ordered, q / 100, independent),
            )
        )
    return tuple(found)


def _thinking(window: _Window) -> float:
    """Mean pause before the window's requests, in ns."""
    think = window.all.think_ns[window.ended]
    return float(np.maximum(think, 0).mean()) if len(think) else 0.0


def _little(window: _Window) -> Little:
    """Closed loop: what was held against the concurrency. Open loop: the product against what was
    in flight, where the ends of the window move it by a latency's share of its length.
    """
    rows, length = window.all, window.end - window.start
    think = np.maximum(rows.think_ns, 0)
    flying = window.overlap_ns(rows.sent_ns, rows.done_ns)
    # what never went out has no time in flight, but its client was thinking
    pausing = window.overlap_ns(rows.intended_ns - think, rows.intended_ns)
    ended = window.ended
    count = int(ended.sum())
    product = float((rows.done_ns - rows.sent_ns + think)[ended].sum()) / length
    held = (flying + pausing) / length
    tolerance = LITTLE_TOLERANCE + 1 / max(1, count)
    if window.level.mode == "closed":
        return Little(float(window.level.concurrency or 1), product, held, tolerance)
    slowest = float(np.percentile((rows.done_ns - rows.sent_ns)[ended], 99)) if count else 0.0
    return Little(flying / length, product, product, tolerance + slowest / length)


def _generator(window: _Window, think_ns: float) -> Generator:
    level, rows = window.level, window.all
    sends = rows.take(window.meant & ((rows.ok >= 0) | (rows.done_ns > rows.sent_ns)))
    lag = (sends.sent_ns - sends.intended_ns).astype(np.float64)
    latency = (window.answered.done_ns - window.answered.sent_ns).astype(np.float64)
    late = (
        max(float(LATE_NS), LATE_SHARE * float(np.median(latency)))
        if len(latency)
        else float(LATE_NS)
    )
    cycle = (float(latency.mean()) if len(latency) else 0.0) + think_ns
    known = len(lag) > 0
    ended = int(window.ended.sum())
    return Generator(
        sends=len(lag),
        lag_mean_ns=float(lag.mean()) if known else 0.0,
        lag_p99_ns=float(np.percentile(lag, 99)) if known else 0.0,
        lag_share=float(lag.mean()) / cycle if known and cycle else 0.0,
        late_share=float((lag > late).mean()) if known else 0.0,
        cpu_share=None
        if level.cpu_ns is None
        else level.cpu_ns / level.window_ns / max(1, level.clients),
        cpu_ns_per_request=None if level.cpu_ns is None or not ended else level.cpu_ns / ended,
    )


def _trend(window: _Window) -> Trend | None:
    """The halves of the window against each other, by the means of its stretches."""
    answered = window.answered
    slices = _slices(len(answered)) // 2 * 2
    if slices < FEWEST_BATCHES:
        return None
    place = _place(window, answered.done_ns, slices)
    counts = np.bincount(place, minlength=slices).astype(np.float64)
    sums = np.bincount(place, (answered.done_ns - answered.sent_ns).astype(np.float64), slices)
    if not counts.all():
        return None
    rate, rate_beyond = _halves(counts)
    latency, latency_beyond = _halves(sums / counts)
    return Trend(rate, rate_beyond, latency, latency_beyond)


MATERIAL_CHANGE, SIGMAS = 0.1, 3.0


def _halves(means: F64) -> tuple[float, bool]:
    """Relative change from the first half to the second, and whether it is material and beyond
    chance.
    """
    first, second = means[: len(means) // 2], means[len(means) // 2 :]
    change = float(second.mean() / first.mean() - 1)
    error = math.hypot(
        *(
            float(half.std(ddof=1)) / math.sqrt(len(half)) / float(first.mean())
            for half in (first, second)
        )
    )
    return change, abs(change) > max(MATERIAL_CHANGE, SIGMAS * error)
