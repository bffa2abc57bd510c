"""Energy in a window of time: by the device's counter where it can be trusted, else by the
trapezoid over power samples.

All functions are pure. Times are ns, energy is in joules. A window's edges fall between samples and
between the sensor's refreshes: the interval of every figure is widened by one sensor period times
the swing of the power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.stats.intervals import (
    EMPTY,
    Intervals,
    contains,
    inside_ns,
    intersect,
    merge,
    window,
)
from profharness.trace.model import F64, I64, Samples

OF_SCAN, OF_LEVEL = "--min-seconds {:g}", "--time {:g}"
OF_COMMAND = "a program that works for {:g} s"
"""What makes the windows longer: of trials, of levels of load, and where the program decides."""
MIN_PERIODS = 20  # of the sensor in a window, for power and energy
MAX_GAP = 5  # sampling intervals after which power is not joined by a line
COUNTER_TOLERANCE = 0.2  # docs/metrics.md#energy: counter against integrated power
MIN_COVERED = 0.8  # of a window, for a figure that stands for all of it


@dataclass(frozen=True)
class Energy:
    """Joules in the part of a window that samples cover, scaled to the whole of it; `by` is
    "counter" or "power".
    """

    joules: float
    low: float
    high: float
    by: str
    covered: float
    seconds: float

    @property
    def watts(self) -> float:
        return self.joules / self.seconds


@dataclass(frozen=True)
class CounterCheck:
    """The counter against integrated power over the same time. `why_not` is empty where the counter
    may be used.
    """

    ratio: float | None
    why_not: str


def integrate_power(at_ns: I64, watts: F64, when: Intervals) -> tuple[float, int]:
    """Trapezoid over instants inside the merged windows, and the ns that it covers. Gaps of more
    than five samples stay out.
    """
    if len(at_ns) < 2:
        return 0.0, 0
    length = np.diff(at_ns)
    joined = (length > 0) & (length <= MAX_GAP * np.median(length))
    covered = intersect(merge(Intervals(at_ns[:-1][joined], at_ns[1:][joined])), when)
    if not len(covered):
        return 0.0, 0
    # the power at the windows' ends lies on the lines between the samples
    edges = np.unique(np.concatenate((covered.start, covered.end, at_ns[contains(covered, at_ns)])))
    pieces = Intervals(edges[:-1], edges[1:])
    inside = inside_ns(pieces, covered)
    power = np.interp(edges, at_ns, watts)
    return float(np.dot((power[:-1] + power[1:]) / 2, inside)) / 1e9, covered.total


def integrate_means(at_ns: I64, until_ns: I64, watts: F64, when: Intervals) -> tuple[float, int]:
    """Mean powers over intervals (a counter's growth), cut at the windows' ends, and the ns that
    they cover.
    """
    inside = inside_ns(Intervals(at_ns, until_ns), when)
    return float(np.dot(watts, inside)) / 1e9, int(inside.sum())


def check_counter(counter: Samples, power: Samples) -> CounterCheck:
    """Over all that both have seen: the counter must move, and agree with the power within 20 %."""
    if not len(counter):
        return CounterCheck(None, "there is no energy counter")
    moved = "" if counter.value.max() > 0 else "it never moved"
    both = (
        window(
            max(int(counter.at_ns[0]), int(power.at_ns[0])),
            min(int(counter.until_ns[-1]), int(power.at_ns[-1])),
        )
        if len(power)
        else EMPTY
    )
    integral, covered = integrate_power(power.at_ns, power.value, both)
    counted, counted_ns = integrate_means(counter.at_ns, counter.until_ns, counter.value, both)
    if not counted_ns or integral <= 0:
        return CounterCheck(None, moved)
    ratio = (counted / counted_ns) / (integral / covered)
    if not moved and abs(ratio - 1) > COUNTER_TOLERANCE:
        return CounterCheck(ratio, f"it says {ratio:.2f} times the integrated power")
    return CounterCheck(ratio, moved)


def energy_in(power: Samples, counter: Samples, when: Intervals, period_ns: int) -> Energy | None:
    """By the counter where it is there (leave it empty when it failed its check), else by power;
    None below 80 % coverage.
    """
    when = merge(when)
    length = when.total
    if not length:
        return None
    options: list[tuple[str, tuple[float, int]]] = []
    if len(counter):
        options.append(
            ("counter", integrate_means(counter.at_ns, counter.until_ns, counter.value, when))
        )
    options.append(("power", integrate_power(power.at_ns, power.value, when)))
    for by, (joules, covered) in options:
        if covered >= MIN_COVERED * length:
            whole = joules * length / covered
            doubt = _swing(power if len(power) else counter, when) * period_ns / 1e9 * len(when)
            return Energy(
                whole, max(whole - doubt, 0.0), whole + doubt, by, covered / length, length / 1e9
            )
    return None


def _swing(power: Samples, when: Intervals) -> float:
    """Between the 5th and the 95th percentile of the power around the windows, in W."""
    near = contains(when, power.at_ns)
    values = power.value[near] if near.any() else power.value
    return float(np.percentile(values, 95) - np.percentile(values, 5)) if len(values) else 0.0


def too_short(when: Intervals, period_ns: int, longer: str = OF_SCAN) -> str:
    """What to ask for when the windows are shorter than twenty sensor periods: `longer` with the
    seconds put in; empty when they are long enough.
    """
    needed = MIN_PERIODS * period_ns
    return "" if merge(when).total >= needed else longer.format(np.ceil(needed / 1e8) / 10)


def total(parts: Sequence[Energy]) -> Energy:
    """Of several packages over the same window; doubts add up, because one sensor's lateness is the
    other's too.
    """
    by = sorted({part.by for part in parts})
    return Energy(
        sum(part.joules for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        " and ".join(by),
        min(part.covered for part in parts),
        parts[0].seconds,
    )
