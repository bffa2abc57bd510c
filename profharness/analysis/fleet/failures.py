"""How many devices of a fleet work, of which each fails now and then and is repaired
(docs/fleet.md#failures).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from profharness.analysis.fleet.records import ClosedLoad, Fleet, Load, OpenLoad

REST = 1e-6
"""Share of time of the states that are left out, all together."""
_BACKLOGS, _STEPS = 4000, 400_000


@dataclass(frozen=True)
class Failures:
    """A device works for `mtbf_s` seconds on average, then it is repaired for `repair_s`, whatever
    the others do.
    """

    mtbf_s: float
    repair_s: float

    @property
    def availability(self) -> float:
        """The share of time in which a device works."""
        return self.mtbf_s / (self.mtbf_s + self.repair_s)


def states(devices: int, failures: Failures | None) -> dict[int, float]:
    """The share of time in which so many devices work, by a binomial distribution, the most likely
    ones first. What is left out makes no more than `REST`.
    """
    if failures is None:
        return {devices: 1.0}
    up = failures.availability
    every = [(_chance(devices, number, up), number) for number in range(devices + 1)]
    found, covered = {}, 0.0
    for chance, number in sorted(every, reverse=True):
        if covered >= 1 - REST:
            break
        found[number] = chance
        covered += chance
    return found


def _chance(devices: int, number: int, up: float) -> float:
    if up >= 1:
        return float(number == devices)
    ways = math.lgamma(devices + 1) - math.lgamma(number + 1) - math.lgamma(devices - number + 1)
    return math.exp(ways + number * math.log(up) + (devices - number) * math.log1p(-up))


def held_up(fleet: Fleet, load: Load, failures: Failures | None, throughput: float) -> float:
    """The share of requests that meet too few working devices: their latency is that of a repair.

    Of a rate, those that come while it is more than the working devices serve, and while what has
    gathered then is served. Of clients that wait, one request of each whenever no device works.
    """
    if failures is None:
        return 0.0
    found = states(fleet.devices, failures)
    if isinstance(load, ClosedLoad):
        outages = found.get(0, 0.0) * fleet.devices / failures.repair_s
        return min(outages * load.clients / throughput, 1.0) if throughput else 1.0
    few = [up for up in found if is_too_few(fleet, up, load)]
    if not few:
        return 0.0
    first = max(few)
    lasts, entries = _backlog(fleet, load, failures, first)
    above = _chance(fleet.devices, first + 1, failures.availability)
    return min(above * (first + 1) / failures.mtbf_s * lasts / entries, 1.0)


def _backlog(fleet: Fleet, load: OpenLoad, failures: Failures, first: int) -> tuple[float, float]:
    """Mean seconds of a backlog that begins as `first` devices are left, and how often so few are
    left until it is gone. What gathers is a fluid: it grows by what comes and is not served. Each
    device fails and is repaired by itself, after times that scatter exponentially.
    """
    source, one = random.Random(0), fleet.capacity / fleet.devices  # noqa: S311  no secret
    seconds, entries, steps, backlogs = 0.0, 0, 0, 0
    while backlogs < _BACKLOGS and steps < _STEPS:
        up, waiting, backlogs, entries = first, 0.0, backlogs + 1, entries + 1
        while steps < _STEPS:
            steps += 1
            fail, repair = up / failures.mtbf_s, (fleet.devices - up) / failures.repair_s
            lasts, growth = source.expovariate(fail + repair), load.rate - up * one
            if waiting + growth * lasts <= 0:
                seconds += waiting / -growth if waiting else 0.0
                break
            waiting, seconds = waiting + growth * lasts, seconds + lasts
            if source.random() * (fail + repair) < repair:
                up += 1
            else:
                up -= 1
                entries += up == first
    return seconds / backlogs, entries / backlogs


def is_too_few(fleet: Fleet, up: int, load: Load) -> bool:
    """Whether the queue grows while so many devices work."""
    if not isinstance(load, OpenLoad):
        return up == 0
    return up * fleet.capacity / fleet.devices <= load.rate
