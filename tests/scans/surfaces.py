"""Made-up response surfaces: the throughput of a program of several stages whose slowest one counts
most, over axes of numbers and of categories.
"""

from __future__ import annotations

import math

import numpy as np

from profharness.rundir.executions.axes import Axis
from profharness.scans.settings_search import Measured
from profharness.stats.surrogate import grid_of

_FEWEST, _MOST = 16, 400


class Surface:
    """Two to four axes of two to five values; two or three stages. On an axis of numbers a stage
    gets faster or slower, or has a best value; a category has a factor for each. One surface in
    three falls by 40 % beyond a corner, as where memory is full.
    """

    def __init__(self, dice: np.random.Generator) -> None:
        counts: list[int] = []
        while not _FEWEST <= math.prod(counts) <= _MOST:
            counts = [int(dice.integers(2, 6)) for _ in range(dice.integers(2, 5))]
        numbers = [bool(dice.random() < 0.75) for _ in counts]
        self.axes = tuple(
            Axis(
                f"a{at}", tuple(f"{value + 1}" if number else f"c{value}" for value in range(count))
            )
            for at, (count, number) in enumerate(zip(counts, numbers, strict=True))
        )
        levels = grid_of(counts, numbers).levels
        across = levels / np.array([count - 1 for count in counts])
        stages = []
        for _ in range(dice.integers(2, 4)):
            speed = np.full(len(levels), dice.normal(0, 0.5))
            for axis, number in enumerate(numbers):
                if not number:
                    speed += dice.normal(0, 0.35, counts[axis])[levels[:, axis]]
                    continue
                if dice.random() < 0.6:
                    speed += dice.normal(0, 0.8) * across[:, axis]
                if dice.random() < 0.3:
                    speed -= abs(dice.normal(0, 1)) * (across[:, axis] - dice.random()) ** 2
            stages.append(np.exp(speed))
        sharp = dice.uniform(2, 8)
        self.rates = np.sum([stage**-sharp for stage in stages], axis=0) ** (-1 / sharp)
        if dice.random() < 1 / 3:
            first, second = dice.choice(len(counts), 2, replace=False)
            full = across[:, first] + across[:, second] > 1.5
            self.rates = np.where(full, 0.6 * self.rates, self.rates)

    def measured(self, place: int, noise: float, dice: np.random.Generator) -> Measured:
        """One level: the rate times a factor of scatter `noise`."""
        return Measured(place, math.log(self.rates[place]) + float(dice.normal(0, noise)), noise)
