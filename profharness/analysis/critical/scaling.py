"""How times grow with the batch size, from those that were measured at other sizes. Pure.

Between two sizes a time has a part per call and a part per item: a + b x size. Where it grows more
than in proportion (a library takes another way, a cache no longer holds the data) there is no such
part per call: there it is the power law through both sizes. Beyond the sizes the line through the
two nearest goes on, at least as steep as nothing and at most as steep as in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

FURTHEST = 4
"""How many times larger than the largest measured size, or smaller than the smallest one, a size
may be.
"""


def neighbours(sizes: Sequence[int], size: int) -> tuple[int, int] | None:
    """The places (in ascending `sizes`) of the two sizes that a forecast rests on: those around
    `size`, else the two nearest. None with fewer than two sizes, or too far from all.
    """
    if len(sizes) < 2 or size > FURTHEST * sizes[-1] or size * FURTHEST < sizes[0]:
        return None
    above = int(np.searchsorted(np.array(sizes), size))
    second = min(max(above, 1), len(sizes) - 1)
    return second - 1, second


def forecast(pair: tuple[int, int], low: F64, high: F64, size: int) -> F64:
    """Times at a size from those at the smaller (`low`) and the larger (`high`) of a pair of sizes,
    by the rule above.
    """
    small, large = pair
    slope = (high - low) / (large - small)
    line = low + slope * (size - small)
    if size > large:
        return np.clip(line, high, high * size / large)
    if size < small:
        return np.clip(line, low * size / small, low)
    steep = (high * small > low * large) & (low > 0)
    return np.where(steep, power_law(pair, low, high, size), line)


def power_law(pair: tuple[int, int], low: F64, high: F64, size: int) -> F64:
    """Times at a size by the power law through both sizes of a pair; 0 where one of them is."""
    known = (low > 0) & (high > 0)
    small, large = pair
    exponent = np.log(np.where(known, high, 1) / np.where(known, low, 1)) / np.log(large / small)
    return np.where(known, low * (size / small) ** exponent, 0.0)


def share_of_larger(pair: tuple[int, int], size: int) -> float:
    """Where a size lies between a pair, by its logarithm: 0 at the smaller, 1 at the larger, and no
    more outside of them.
    """
    place = np.log(size / pair[0]) / np.log(pair[1] / pair[0])
    return float(np.clip(place, 0.0, 1.0))
