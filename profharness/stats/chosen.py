"""The best point of several axes, and the one to run at: pure, since a running scan asks too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WITHIN = 0.05
"""Of the best rate: nobody sees the difference, and less of something is used."""


@dataclass(frozen=True)
class Rated:
    """A point by its values of the axes, in their order, with its rate; `kept` whether it keeps
    what was required.
    """

    name: str
    setting: tuple[str, ...]
    rate: float
    kept: bool = True


def chosen_points(
    rated: Sequence[Rated], levels: Sequence[Sequence[str]], within: float = WITHIN
) -> tuple[Rated, Rated]:
    """The point with the highest rate, and the recommended one: among those within 5 % of it the
    one that asks for least, which is the smallest sum over the axes of the position of its value in
    the axis's ascending numbers, as a share of the axis; categories ask for nothing. Of equals the
    faster one.

    `levels` are the values of each axis. Raises ValueError for no points.
    """
    best = max(rated, key=lambda one: one.rate)
    near = [one for one in rated if one.rate >= (1 - within) * best.rate]
    places = [_places(values) for values in levels]

    def asks(one: Rated) -> float:
        return round(
            sum(place.get(value, 0.0) for place, value in zip(places, one.setting, strict=True)), 9
        )

    return best, min(near, key=lambda one: (asks(one), -one.rate))


def _places(values: Sequence[str]) -> dict[str, float]:
    """The position of each value among the numbers, from 0 to 1; empty for a category."""
    try:
        ascending = sorted(values, key=float)
    except ValueError:
        return {}
    last = max(len(ascending) - 1, 1)
    return {value: at / last for at, value in enumerate(ascending)}
