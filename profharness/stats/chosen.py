"""The best point of several axes, and the one to run at: pure, since a running scan asks too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.stats.surrogate import Grid, Measurements, posterior_at

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


SCATTER = 0.03
"""Of one measurement around its setting, until settings that were measured again tell: it counts as
one of them."""


def scatter(squares: float, freedom: int) -> float:
    """The standard deviation of one measurement in logarithms, from the squares of what settings
    that were measured again scatter around their means, with its degrees of freedom.
    """
    return math.sqrt((SCATTER**2 + squares) / (1 + freedom))


def scatter_of(rates: Iterable[Sequence[float]]) -> float:
    """The same from the rates of each setting."""
    squares, freedom = 0.0, 0
    for values in rates:
        logs = [math.log(value) for value in values]
        mean = sum(logs) / len(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        freedom += len(logs) - 1
    return scatter(squares, freedom)


def smoothed_rates(
    settings: Sequence[Sequence[str]],
    levels: Sequence[Sequence[str]],
    means: Sequence[float],
    errors: Sequence[float],
) -> list[float]:
    """What is expected of each setting by its own measurements and those of the others, which it
    resembles: few noisy ones say more together (docs/metrics.md#axes-search).

    `levels` are the values of each axis, `settings` one of them per axis; `means` are logarithms of
    rates, `errors` their standard errors.
    """
    numbers = [_is_number(values) for values in levels]
    order = [
        sorted(values, key=float) if number else list(values)
        for values, number in zip(levels, numbers, strict=True)
    ]
    positions = np.array(
        [[axis.index(value) for axis, value in zip(order, one, strict=True)] for one in settings],
        np.float64,
    )
    measured = Measurements(
        Grid(positions.astype(np.int64), tuple(map(len, levels)), tuple(numbers)),
        positions,
        np.array(means, np.float64),
        (np.array(errors, np.float64),),
    )
    return [math.exp(one) for one in posterior_at(measured, positions).mean.tolist()]


def _is_number(values: Sequence[str]) -> bool:
    try:
        return bool([float(value) for value in values])
    except ValueError:
        return False
