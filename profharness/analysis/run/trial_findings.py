"""What is wrong with the trials of a point: warm-up in the mean, odd trials, timers stopped too
early, too few.

Pure checks on durations (docs/metrics.md#consistency). A finding never changes a figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.findings import Finding, finding
from profharness.stats.throughput import Drift, TrialStats
from profharness.trace.model import F64
from profharness.units import format_ns

FEWEST_TRIALS = 10
FAR_MADS = 10
MATERIAL = 0.01
SIGMAS = 3.0
# A sigma from the median absolute deviation of normal noise: sigma = 1.4826 MAD, and its square has
# a relative standard error of 2.33 / sqrt(n).
_SIGMA_PER_MAD = 1.4826
_SQUARE_ERROR = 2.33
# Launch-only trials take a small part of a full one; a clock that boosts at the start does not
# halve a trial.
_UNSYNCED_BELOW = 0.5
_EARLY_SHARE = 0.1
_EARLY_AT_LEAST = 3


@dataclass(frozen=True)
class _Spread:
    """Trials with their robust centre and width, in ns."""

    times: F64
    median: float
    mad: float

    @property
    def slow(self) -> npt.NDArray[np.bool_]:
        return self.times > self.median + FAR_MADS * self.mad

    @property
    def fast(self) -> npt.NDArray[np.bool_]:
        far = self.times < self.median - FAR_MADS * self.mad
        return np.asarray(far & (self.times < _UNSYNCED_BELOW * self.median))


def trial_findings(
    durations_ns: npt.ArrayLike, stats: TrialStats, point: str | None = None
) -> tuple[Finding, ...]:
    """Findings of one point, in the order missing-sync, warmup-leak or outlier-trial,
    too-few-trials.

    Of fewer than ten trials one that was disturbed looks like a fault: there an error is a warning.
    Trials further than 10 MAD from the median count when they move the mean by more than 1 %; and
    the consistency counts when it exceeds 1 + CV^2 by more than its error and by 1 %.
    """
    times = np.asarray(durations_ns, np.int64).astype(np.float64)
    median = float(np.median(times))
    spread = _Spread(times, median, float(np.median(np.abs(times - median))))
    findings = []
    if times.size > 2:
        unsynced = _missing_sync(spread, point)
        # A consistency that fast trials explain says nothing more about slow ones.
        slow = _slow_trials(spread, point) or (None if unsynced else _excess(spread, stats, point))
        findings = [item for item in (unsynced, slow) if item]
    if times.size < FEWEST_TRIALS:
        findings = [eased(item) for item in findings]
        findings.append(
            finding(
                "too-few-trials",
                f"{times.size} trials: an interval from fewer than {FEWEST_TRIALS} says little",
                point=point,
                trials=int(times.size),
            )
        )
    return tuple(findings)


def eased(item: Finding, why: str = "") -> Finding:
    """The finding as a warning at most, where so few trials, or other work (`why`), may explain it
    as well.
    """
    if item.severity != "error":
        return item
    return msgspec.structs.replace(
        item, severity="warning", message=f"{item.message}; {why}" if why else item.message
    )


def _missing_sync(spread: _Spread, point: str | None) -> Finding | None:
    fast, rates = spread.fast, 1 / spread.times
    if not fast.any() or fast.all():
        return None
    moved = float(rates.mean() / rates[~fast].mean() - 1)
    if moved <= MATERIAL:
        return None
    shortest = float(spread.times[fast].min())
    return finding(
        "missing-sync",
        f"{int(fast.sum())} of {fast.size} trials end far below the rest (shortest "
        f"{format_ns(shortest)}, "
        f"median {format_ns(spread.median)}) and raise the mean throughput by {100 * moved:.1f} "
        "%: the timer stopped before the device did",
        point=point,
        trials=int(fast.sum()),
        shortest_ns=shortest,
        median_ns=spread.median,
        moved_share=moved,
    )


def _slow_trials(spread: _Spread, point: str | None) -> Finding | None:
    slow, times = spread.slow, spread.times
    if not slow.any():
        return None
    moved = float(times.mean() / times[~slow].mean() - 1)
    if moved <= MATERIAL:
        return None
    early = max(_EARLY_AT_LEAST, round(_EARLY_SHARE * times.size))
    excess = np.where(slow, times - spread.median, 0.0)
    leak = bool(excess[:early].sum() > 0.5 * excess.sum())
    longest = float(times.max())
    single = int(slow.sum()) == 1
    where = (
        f"trial {int(times.argmax())} of {times.size}"
        if single
        else f"{int(slow.sum())} of {times.size} trials"
    )
    words = "at the start, before the steady part" if leak else "far above the rest"
    return finding(
        "warmup-leak" if leak else "outlier-trial",
        f"{where} {words} (longest {format_ns(longest)}, median {format_ns(spread.median)}) "
        f"{'raises' if single else 'raise'} the mean time by {100 * moved:.1f} %",
        point=point,
        trials=int(slow.sum()),
        longest_ns=longest,
        median_ns=spread.median,
        moved_share=moved,
    )


def _excess(spread: _Spread, stats: TrialStats, point: str | None) -> Finding | None:
    """The consistency beyond what even scatter gives: E[t] E[1/t] = 1 + CV^2 to second order."""
    if stats.consistency_sem is None:
        return None
    square = (_SIGMA_PER_MAD * spread.mad / spread.median) ** 2
    excess = stats.consistency - 1 - square
    error = math.hypot(stats.consistency_sem, square * _SQUARE_ERROR / math.sqrt(stats.trials))
    if excess <= max(MATERIAL, SIGMAS * error):
        return None
    early = max(_EARLY_AT_LEAST, round(_EARLY_SHARE * stats.trials))
    leak = bool(np.median(spread.times[:early]) > 1.05 * np.median(spread.times[early:]))
    return finding(
        "warmup-leak" if leak else "outlier-trial",
        f"mean throughput times mean time is {stats.consistency:.3f} of the items, "
        f"{1 + square:.3f} expected from the scatter: "
        + ("the first trials are slower" if leak else "a few trials are far from the rest"),
        point=point,
        consistency=stats.consistency,
        expected=1 + square,
        error=error,
    )


def drift_finding(drift: Drift) -> tuple[Finding, ...]:
    """The finding `drift` when a repeated point moved beyond chance."""
    if not drift.significant:
        return ()
    return (
        finding(
            "drift",
            f"{drift.point or 'a repeated point'} changed by {100 * drift.relative:+.1f} % "
            "between its first "
            "measurement and the repeat at the end",
            point=drift.point or None,
            drift_share=drift.relative,
        ),
    )
