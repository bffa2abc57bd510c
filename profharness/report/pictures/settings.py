"""What a scan varied, and how much of the throughput each setting explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profharness.analysis.records import PointSummary
from profharness.report.text.figures import finite

_TITLES = {
    "backend": "backend",
    "batch_size": "batch size",
    "concurrency": "concurrency",
    "processes": "processes",
    "rate": "requests/s",
    "mode": "mode",
}


@dataclass(frozen=True)
class Setting:
    """One field of the points that takes several values: its values in order, and its importance
    where there are enough points to say it.
    """

    field: str
    title: str
    values: tuple[str | float, ...]
    importance: float | None

    def place(self, point: PointSummary) -> int:
        """Which of the values the point has."""
        return self.values.index(getattr(point, self.field))


def measured(points: Sequence[PointSummary]) -> list[PointSummary]:
    """The points that have a throughput."""
    return [
        point for point in points if point.state == "ok" and (finite(point.throughput) or 0.0) > 0
    ]


def settings(points: Sequence[PointSummary]) -> tuple[Setting, ...]:
    """The settings that take several values and that every point has, the first as the field is
    declared.
    """
    found = []
    for field, title in _TITLES.items():
        values = {getattr(point, field) for point in points}
        if len(values) > 1 and not values & {None, ""}:
            ordered = tuple(sorted(values))
            found.append(Setting(field, title, ordered, explained(points, field)))
    return tuple(found)


def explained(points: Sequence[PointSummary], field: str) -> float | None:
    """The share of the variance of the logarithm of throughput that the means by this one setting
    explain: sum of squares between its groups over the whole. None where no group holds two
    points, since means of single points explain everything.

    It says nothing of settings that act together, and shares of several settings need not sum to
    one: where a scan did not cross all values, they share what they explain.
    """
    groups: dict[object, list[float]] = {}
    for point in points:
        groups.setdefault(getattr(point, field), []).append(math.log(point.throughput or 1.0))
    every = [value for group in groups.values() for value in group]
    if max((len(group) for group in groups.values()), default=0) < 2:
        return None
    mean = math.fsum(every) / len(every)
    whole = math.fsum((value - mean) ** 2 for value in every)
    between = math.fsum(
        len(group) * (math.fsum(group) / len(group) - mean) ** 2 for group in groups.values()
    )
    return between / whole if whole > 0 else None
