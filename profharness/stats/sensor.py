"""What a power sensor can resolve: how often it gives a new value, how late it is, and over which
time it averages.

Found from the samples themselves, without knowing the part: a value that does not change between
two reads was not refreshed, and a device's energy counter tells what the power really was
meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from profharness.trace.model import F64, I64

MIN_CHANGES = 10
MIN_SWING = 0.1  # of the mean: without rise and fall nothing can be said of a delay
_STEPS = 41
_LONGEST_NS = 2_000_000_000
_AS_GOOD = 1.2
_CLOSE = 0.1  # of the longest delay: so far apart equally good fits may lie
_RESOLUTION = 0.02  # of the swing: closer than this fits cannot be told apart
# of the swing: a larger residual means that the counter and the sensor do not tell the same
_GOOD_FIT = 0.25


@dataclass(frozen=True)
class UpdatePeriod:
    """Time between new values. Unresolved: new at (almost) every sample, so the period is at most
    `period_ns`.
    """

    period_ns: int
    resolved: bool
    changes: int


@dataclass(frozen=True)
class Response:
    """The sensor shows the mean power over `window_ns` that ended `delay_ns` before. `residual_w`
    is what this leaves unexplained (rms). Delays from `low_ns` to `high_ns` explain the samples
    equally well.
    """

    delay_ns: int
    window_ns: int
    residual_w: float
    low_ns: int = 0
    high_ns: int = 0
    determined: bool = True
    """False where fits lie far apart, as under a load that repeats: then the delay is unknown."""


def update_period(at_ns: I64, value: F64) -> UpdatePeriod | None:
    """From the times at which the value changed; None for fewer than ten changes.

    While power is level a refreshed value looks like an old one, which only lengthens single
    intervals: the lower third of them is taken.
    """
    changed = at_ns[1:][np.diff(value) != 0]
    if len(changed) < MIN_CHANGES + 1:
        return None
    sampling = float(np.median(np.diff(at_ns)))
    between = float(np.percentile(np.diff(changed), 33))
    resolved = between > 1.5 * sampling
    return UpdatePeriod(round(between if resolved else sampling), resolved, len(changed))


def response(at_ns: I64, power: F64, counter_at_ns: I64, counter_j: F64) -> Response | None:
    """Delay and averaging time that best explain the sensor by the energy counter; None where
    nothing can be said.

    `counter_j` is the counter's reading (joules, any origin) at each of its own times. Every pair
    from a grid of 41 x 41 is tried; the counter is taken as linear between its readings.

    Under a load that repeats every 0.4 s a delay of 0.3 s looks like one of 0.7 s: where fits that
    are equally good see the power of instants more than a tenth of the longest delay apart, none of
    them is taken for the delay.
    """
    if len(power) < 4 * MIN_CHANGES or len(counter_j) < 4 * MIN_CHANGES:
        return None
    longest = min(_LONGEST_NS, int(counter_at_ns[-1] - counter_at_ns[0]) // 4)
    inside = (at_ns >= counter_at_ns[0] + 2 * longest) & (at_ns <= counter_at_ns[-1])
    if inside.sum() < 2 * MIN_CHANGES:
        return None
    at_ns, power = at_ns[inside], power[inside]
    swing = float(np.percentile(power, 95) - np.percentile(power, 5))
    if swing < MIN_SWING * max(float(power.mean()), 1e-9):
        return None
    grid = np.linspace(0, longest, _STEPS)
    shortest = float(np.median(np.diff(counter_at_ns)))
    # the counter's means lie half their length in the past: for a sensor without delay the best fit
    # is that much ahead
    tried = [
        Response(
            max(round(delay), 0),
            round(window),
            _residual(at_ns, power, counter_at_ns, counter_j, delay, window),
        )
        for delay in (-shortest / 2, *grid)
        for window in np.maximum(grid, shortest)
    ]
    best = min(one.residual_w for one in tried)
    if best > _GOOD_FIT * swing:
        return None
    # of those that explain it equally well the simplest: least delay, least averaging
    limit = max(_AS_GOOD * best, best + _RESOLUTION * swing)
    alike = [one for one in tried if one.residual_w <= limit]
    seen = [one.delay_ns + one.window_ns / 2 for one in alike]
    delays = [one.delay_ns for one in alike]
    return replace(
        min(alike, key=lambda one: one.delay_ns + one.window_ns),
        low_ns=min(delays),
        high_ns=max(delays),
        determined=max(seen) - min(seen) <= _CLOSE * longest,
    )


def _residual(
    at_ns: I64, power: F64, counter_at_ns: I64, counter_j: F64, delay: float, window: float
) -> float:
    """Root mean square of the sensor's power less the counter's mean power over `window` ns,
    `delay` ns earlier.
    """
    end = at_ns - delay
    energy = np.interp(end, counter_at_ns, counter_j) - np.interp(
        end - window, counter_at_ns, counter_j
    )
    return float(np.sqrt(np.mean((power - energy / window * 1e9) ** 2)))


def sensor_period_ns(at_ns: I64, update: UpdatePeriod | None, found: Response | None) -> int:
    """The time over which one value speaks: the longest of sampling, refreshing and averaging."""
    sampling = round(float(np.median(np.diff(at_ns)))) if len(at_ns) > 1 else 0
    return max(
        sampling,
        update.period_ns if update is not None else 0,
        found.window_ns if found is not None else 0,
    )
