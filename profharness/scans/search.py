"""Which level of concurrency to measure next: a ladder until adding clients stops paying, then the
neighbourhood of the knee. Pure.

The ladder ends where two doublings gain less than noise, where the latency limit is broken, or in a
storm of errors. Then the gap around the limit and around the knee (N = X_max / lambda,
docs/metrics.md#knee) is halved, until it is as narrow as wanted or the levels allowed are used up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LADDER = tuple(2**step for step in range(11))
STORM = 0.1
"""From this share of failed requests on a level is a storm of errors: what it answers says nothing
about the server.
"""


@dataclass(frozen=True)
class Seen:
    """One measured level. `kept`: whether the latency limit holds; `storm`: whether errors
    prevail.
    """

    level: int
    throughput: float
    sem: float = 0.0
    kept: bool = True
    storm: bool = False

    @property
    def sound(self) -> bool:
        return not self.storm and self.throughput > 0


@dataclass(frozen=True)
class Rules:
    """How far to look. `gain` is the least that counts as more throughput, `sigmas` the noise that
    it must exceed.

    `width` is the gap, relative to the level, at which halving stops; `extra` is how many levels
    beyond the ladder are allowed.
    """

    ladder: tuple[int, ...] = LADDER
    gain: float = 0.03
    sigmas: float = 2.0
    width: float = 0.1
    extra: int = 6


DEFAULT = Rules()


def next_level(seen: Sequence[Seen], rules: Rules = DEFAULT) -> int | None:
    """The level to measure now; None once the knee is known as well as the rules ask, or cannot be
    known.
    """
    by_level = {one.level: one for one in seen}
    climbed: list[Seen] = []
    for level in rules.ladder:
        if level not in by_level:
            return level
        climbed.append(by_level[level])
        if _ends(climbed, rules):
            break
    sound = sorted((one for one in seen if one.sound), key=lambda one: one.level)
    beyond = sum(one.level not in rules.ladder for one in seen)
    if not sound or beyond >= rules.extra:
        return None
    return _around_limit(by_level, rules) or _around_knee(sound, by_level, rules)


def _ends(climbed: Sequence[Seen], rules: Rules) -> bool:
    """Whether there is no point in a higher step."""
    last = climbed[-1]
    if not last.sound or not last.kept:
        return True
    if len(climbed) < 3:
        return False
    before = max(climbed[:-2], key=lambda one: one.throughput)
    after = max(climbed[-2:], key=lambda one: one.throughput)
    noise = rules.sigmas * math.hypot(before.sem, after.sem)
    return after.throughput - before.throughput <= max(rules.gain * before.throughput, noise)


def _around_limit(by_level: dict[int, Seen], rules: Rules) -> int | None:
    """Halve the gap between the highest level that is fine and the lowest that is not."""
    broken = [one.level for one in by_level.values() if not one.kept or not one.sound]
    if not broken:
        return None
    fine = [level for level, one in by_level.items() if level < min(broken) and level not in broken]
    return _between(max(fine), min(broken), rules) if fine else None


def _around_knee(sound: Sequence[Seen], by_level: dict[int, Seen], rules: Rules) -> int | None:
    """The knee itself, then the gaps to its neighbours."""
    knee = knee_of(sound)
    levels = sorted(by_level)
    at = min(max(round(knee), levels[0]), levels[-1])
    if at not in by_level:
        return at
    below, above = (
        [level for level in levels if level < at],
        [level for level in levels if level > at],
    )
    lower = _between(below[-1], at, rules) if below else None
    return lower or (_between(at, above[0], rules) if above else None)


def knee_of(sound: Sequence[Seen]) -> float:
    """X_max / lambda, with lambda the throughput per client of the smallest level."""
    first = min(sound, key=lambda one: one.level)
    return max(one.throughput for one in sound) / (first.throughput / first.level)


def _between(low: int, high: int, rules: Rules) -> int | None:
    """The level halfway in proportion; None where the gap is narrow enough."""
    if high - low <= max(1, rules.width * high):
        return None
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)
