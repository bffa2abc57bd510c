"""How long what is left will take, by how long the same took before. Pure: the caller says what has
ended and what is to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_RECENT = 2_000
"""Measurements that an estimate looks at, the last ones."""


@dataclass(frozen=True)
class Part:
    """One measurement of a point in a pass, ended or to come."""

    pass_name: str
    point: str


@dataclass(frozen=True)
class Took:
    """A measurement that has ended, and how long it took from the end of the one before."""

    part: Part
    seconds: float


@dataclass(frozen=True)
class TimeLeft:
    """Seconds that are left; None where nothing tells. `basis` is what the estimate rests on, or
    why there is none.
    """

    seconds: float | None
    basis: str


def time_left(done: Sequence[Took], ahead: Sequence[Part], begun_s: float = 0.0) -> TimeLeft:
    """What is `ahead` takes as long as the same point took in the same pass, else in another pass,
    else as the mean of its pass, else as the mean of all. `begun_s` are the seconds since the last
    end, of which the first that is ahead has used up its own.
    """
    if not ahead:
        return TimeLeft(0.0, "nothing is left to measure")
    if not done:
        return TimeLeft(None, "not known before the first point has ended")
    known = _Means(done[-MOST_RECENT:])
    seconds = [known.of(part) for part in ahead]
    seconds[0] = max(seconds[0] - begun_s, 0.0)
    return TimeLeft(sum(seconds), known.words(ahead))


class _Means:
    """Mean seconds by what they are of."""

    def __init__(self, done: Sequence[Took]) -> None:
        self.count = len(done)
        self._sums: dict[object, tuple[float, int]] = {}
        for took in done:
            part = took.part
            for key in (part, (part.point,), part.pass_name, None):
                total, count = self._sums.get(key, (0.0, 0))
                self._sums[key] = total + took.seconds, count + 1

    def of(self, part: Part) -> float:
        """Seconds of a measurement that is to come."""
        keys = (part, (part.point,), part.pass_name, None)
        total, count = next(self._sums[key] for key in keys if key in self._sums)
        return total / count

    def words(self, ahead: Sequence[Part]) -> str:
        """What the estimate rests on, as a sentence without its end."""
        total, count = self._sums[None]
        words = (
            f"the one point so far took {total:.3g} s"
            if count == 1
            else f"the {count} points so far took {total / count:.3g} s each on average"
        )
        if any((part.point,) in self._sums for part in ahead):
            words += "; one that is measured again counts as long as before"
        fresh = [part for part in ahead if part.pass_name not in self._sums]
        if fresh:
            words += "; passes that have not begun count like those before"
        return words
