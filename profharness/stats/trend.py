"""Whether a series rises all the way: the Theil-Sen slope with Sen's interval, and Kendall's tau.

P. K. Sen, J. Am. Stat. Assoc. 63 (1968) 1379; the variance of S under no trend is that of M. G.
Kendall, n (n - 1) (2 n + 5) / 18. Both are of medians of blocks of neighbours, so that single slow
values, and what neighbours share, count little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import Z95
from profharness.trace.model import F64, I64

FEWEST = 20
BLOCKS = 40


@dataclass(frozen=True)
class Trend:
    """`slope` per value of the series with its 95 % interval `low` to `high`; `tau` between -1 and
    1; `first` and `last` are the slope's line at both ends of the series.
    """

    slope: float
    low: float
    high: float
    tau: float
    first: float
    last: float

    @property
    def rises(self) -> bool:
        """Whether the interval of the slope lies above 0."""
        return self.low > 0


def trend(values: F64 | I64) -> Trend | None:
    """The trend of a series in its order; None for fewer than 20 values."""
    if len(values) < FEWEST:
        return None
    blocks = np.array_split(np.asarray(values, np.float64), min(BLOCKS, len(values) // 2))
    ends = np.cumsum([len(block) for block in blocks])
    places = ends - np.array([(len(block) + 1) / 2 for block in blocks])
    medians = np.array([np.median(block) for block in blocks])
    left, right = np.triu_indices(len(medians), 1)
    rise = medians[right] - medians[left]
    slopes = np.sort(rise / (places[right] - places[left]))
    count = len(medians)
    reach = Z95 * float(np.sqrt(count * (count - 1) * (2 * count + 5) / 18))
    low, high = (
        int(np.clip(np.floor((len(slopes) + sign * reach) / 2), 0, len(slopes) - 1))
        for sign in (-1, 1)
    )
    slope = float(np.median(slopes))
    middle = float(np.median(medians - slope * places))
    return Trend(
        slope,
        float(slopes[low]),
        float(slopes[high]),
        float(np.sign(rise).sum() / len(rise)),
        middle,
        middle + slope * (len(values) - 1),
    )
