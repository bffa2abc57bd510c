"""Which of several like units stands apart by a mean: nodes by their power, devices by power and
clock.

The time is divided into `PARTS` equal parts. In each part, a unit's mean is divided by the median
of the others in the same part, so that what all of them do at once (steps, phases, idle time)
cancels. The mean of the logarithms of these ratios is the unit's ratio, with Student's 95 %
interval over the parts. A unit stands apart where this whole interval lies outside of 1 ± the
larger of `LEAST` and a multiple of the scatter of the other units' ratios around their median: the
standard deviation of all of them, or, from seven on, without the quarter that is furthest out, so
that the slow devices of one node do not hide each other. The multiple is that which like units of
any scatter exceed in one job of 20 (`MULTIPLES`): few units say little of how they scatter.
The unit that is furthest from 1 is judged first. One that stands apart is no longer among "the
others", and the rest is judged anew, until none stands apart or fewer than three are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profharness.stats.bootstrap import student95
from profharness.stats.intervals import Intervals
from profharness.trace.model import F64, Samples

PARTS = 16
FEWEST_PARTS = 8
FEWEST_UNITS = 3
LEAST = 0.05
TRIMMED_FROM = 7
MULTIPLES = {2: 3.1, 3: 9.6, 4: 6.4, 5: 5.1, 6: 4.7, 7: 6.5, 8: 8.4, 11: 6.1, 15: 6.0}
"""By the number of the others, at least: what a normal unit's distance from the median of the
others, over their scatter, exceeds with a probability of 0.05 / units (simulated;
`tests/analysis/power/test_nodes.py` does it again). Two others cannot tell their scatter: there the
multiple is about three robust standard deviations."""


@dataclass(frozen=True)
class Spread:
    """A unit's mean and its ratio to the median of the others; `apart` is None where nothing can
    be said, with the reason in `needs`.
    """

    mean: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    apart: bool | None = None
    needs: str = ""


def part_means(samples: Samples, when: Intervals) -> F64:
    """The mean of a series in each of `PARTS` equal parts of the window; NaN where it has nothing.

    An interval counts in the part that its middle lies in, by its length; an instant counts once.
    """
    begin, end = int(when.start[0]), int(when.end[-1])
    if not len(samples) or end <= begin:
        return np.full(PARTS, np.nan)
    length = np.maximum(samples.until_ns - samples.at_ns, 0)
    part = (samples.at_ns + length // 2 - begin) * PARTS // (end - begin)
    kept = (part >= 0) & (part < PARTS) & np.isfinite(samples.value)
    weight = (np.where(length > 0, length, 1) if length.any() else np.ones(len(samples)))[kept]
    sums = np.bincount(part[kept], weight * samples.value[kept], PARTS)
    total = np.bincount(part[kept], weight, PARTS)
    return np.divide(sums, total, out=np.full(PARTS, np.nan), where=total > 0)


def compare(means: F64) -> list[Spread]:
    """Of the part means of like units (units × parts): each against the median of the others."""
    seen = [row[np.isfinite(row)] for row in means]
    whole = [float(np.mean(row)) if len(row) else None for row in seen]
    if len(means) < FEWEST_UNITS:
        return [Spread(mean, needs=f"at least {FEWEST_UNITS} of a kind") for mean in whole]
    known = np.isfinite(means) & (means > 0)
    logs = np.where(known, np.log(np.where(known, means, 1.0)), np.nan)
    like = known.sum(axis=1) >= FEWEST_PARTS
    apart = np.zeros(len(means), bool)
    while True:
        ratios = logs - _of_others(logs, like & ~apart)
        found = [
            _judged(mean, own[np.isfinite(own)], apart=bool(off))
            for mean, own, off in zip(whole, ratios, apart, strict=True)
        ]
        furthest = _furthest(found, like & ~apart)
        if furthest is None:
            return found
        apart[furthest] = True


def _of_others(logs: F64, like: NDArray[np.bool_]) -> F64:
    """For each unit and part, the median of the other `like` units; NaN where there is none."""
    found = np.full(logs.shape, np.nan)
    for part in range(logs.shape[1]):
        pool = np.flatnonzero(like & np.isfinite(logs[:, part]))
        if not len(pool):
            continue
        found[:, part] = np.median(logs[pool, part])
        order = pool[np.argsort(logs[pool, part], kind="stable")]
        ranks, rest = np.arange(len(order)), len(order) - 1
        if not rest:
            found[order, part] = np.nan
            continue
        ordered = logs[order, part]
        low, high = (
            np.where(ranks > place, ordered[place], ordered[place + 1])
            for place in ((rest - 1) // 2, rest // 2)
        )
        found[order, part] = (low + high) / 2
    return found


def _judged(mean: float | None, own: F64, *, apart: bool) -> Spread:
    if len(own) < FEWEST_PARTS:
        return Spread(mean, needs=f"samples in {FEWEST_PARTS} of {PARTS} parts of the time")
    centre = float(np.mean(own))
    half = student95(len(own) - 1) * float(np.std(own, ddof=1)) / math.sqrt(len(own))
    low, high = math.exp(centre - half), math.exp(centre + half)
    return Spread(mean, math.exp(centre), low, high, apart)


def _furthest(found: Sequence[Spread], like: NDArray[np.bool_]) -> int | None:
    """Of the units that do not stand apart yet, the one whose ratio is furthest from 1, where the
    rule says that it does; None once it does not.
    """
    places = [place for place in np.flatnonzero(like) if found[place].ratio is not None]
    if len(places) < FEWEST_UNITS:
        return None
    centres = np.array([math.log(found[place].ratio or 1.0) for place in places])
    at = int(np.argmax(np.abs(centres)))
    limit, one = max(LEAST, _scatter_limit(np.delete(centres, at))), found[places[at]]
    is_apart = (one.high or 1.0) < 1 - limit or (one.low or 1.0) > 1 + limit
    return int(places[at]) if is_apart else None


def _scatter_limit(others: F64) -> float:
    """How far from 1 units of the scatter of these may stand, in logarithms of ratios."""
    count = len(others)
    distances = np.sort(np.abs(others - np.median(others)))
    kept = distances[: count - (count // 4 if count >= TRIMMED_FROM else 0)]
    scatter = math.sqrt(float((kept**2).sum()) / (len(kept) - 1))
    return MULTIPLES[max(number for number in MULTIPLES if number <= count)] * scatter
