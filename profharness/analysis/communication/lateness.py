"""Whether a rank that comes last does so throughout, or as chance and the node have it.

Calls of one trace are no independent draws: who got fewer cores comes late for a while, then
another. So a rank's mean lateness is bounded from the means of consecutive blocks of calls (batch
means), and what neighbouring blocks have in common widens the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import student95
from profharness.trace.model import F64, I64

FEWEST = 8
"""Calls: of fewer nothing is said."""
QUARTERS = 4
STEADY = 0.25
"""Of its mean over the whole window, that a rank must reach in each quarter of it."""
_BLOCKS = 32
_WIDE = 2  # times the half width of a 95 % interval: one rank in thousands beyond it by chance
_DRIFT = 0.75  # standard errors that the correlation of neighbours may be larger than measured
_ALIKE = 0.9  # the strongest correlation of neighbours that is corrected for


@dataclass(frozen=True)
class Lateness:
    """How long after the last of the others a rank arrives, ns a call (negative: before it).

    `low` bounds the mean from below; `steady` says whether each quarter of the calls has at least
    a quarter of the mean.
    """

    mean_ns: float
    low_ns: float
    steady: bool


def margins(start: I64) -> I64:
    """How long after the last of the others each rank arrives, in ns; (calls, ranks) as given, of
    two ranks or more.
    """
    ordered = np.sort(start, axis=1)
    last, second = ordered[:, -1:], ordered[:, -2:-1]
    return np.asarray(start - np.where(start == last, second, last), np.int64)


def lateness(at: Sequence[I64], late_by: Sequence[I64]) -> Lateness | None:
    """Of one rank, from the moments of its calls and how much later than the others it came, group
    by group; None where the calls are too few.
    """
    if sum(len(group) for group in at) < FEWEST:
        return None
    order = np.argsort(np.concatenate(at), kind="stable")
    values = np.concatenate(late_by)[order].astype(np.float64)
    count = min(_BLOCKS, len(values)) // QUARTERS * QUARTERS
    blocks = np.array([block.mean() for block in np.array_split(values, count)])
    mean = float(values.mean())
    quarters = np.array([quarter.mean() for quarter in np.array_split(values, QUARTERS)])
    return Lateness(mean, mean - _half_width(blocks), bool((quarters >= STEADY * mean).all()))


def _half_width(blocks: F64) -> float:
    """Of the interval of the mean of blocks that resemble their neighbours.

    The mean of an autoregressive series with the correlation r from one to the next scatters by
    its innovations' deviation over (1 - r) sqrt(n). r is corrected for its bias (Marriott and Pope
    1954), and taken larger by a part of its standard error (Bartlett 1946): a series that drifts
    for longer than it was watched looks less alike than it is.
    """
    count, off = len(blocks), blocks - blocks.mean()
    square = float((off**2).sum())
    if square <= 0:
        return 0.0
    measured = float((off[1:] * off[:-1]).sum()) / square
    alike = measured + (1 + 4 * measured) / count
    alike += _DRIFT * math.sqrt(max(1 - alike**2, 0.05) / count)
    alike = min(max(alike, 0.0), _ALIKE)
    fresh = off[1:] - alike * off[:-1]
    scatter = math.sqrt(float((fresh**2).sum()) / (count - 2))
    return _WIDE * student95(count - 2) * scatter / ((1 - alike) * math.sqrt(count))
