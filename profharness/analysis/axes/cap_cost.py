"""Which power cap costs a share of the throughput, and what it saves (docs/metrics.md#power-caps).
Pure.

The throughput cannot fall where the cap rises, so that the measured points are replaced by their
isotonic regression (Barlow and Brunk 1972) before anything is read between them. Between two caps
nobody has measured: each further watt gives less, so that the curve lies above the straight line
between them and below the one that goes on as steeply as before. The interval covers both; the
value is that of a monotone cubic (Fritsch and Carlson 1980). All in logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import Z95, generator
from profharness.stats.estimate import Estimate
from profharness.trace.model import F64

COST = 0.05
"""The share of the throughput that a cap may cost."""
DRAWS = 400
_GRID = 401
_TAIL = 0.025
_MOST = 40
"""Caps, of which intervals are drawn; nobody sets more."""


@dataclass(frozen=True, eq=False)
class CapSeries:
    """Caps (W, ascending) with the throughput and the mean power (W) at each, and the half widths
    of their 95 % intervals as shares; NaN where there is none. `power` None where none was read.
    """

    cap_w: F64
    rate: F64
    rate_half: F64
    power: F64 | None = None
    power_half: F64 | None = None


@dataclass(frozen=True)
class CapCost:
    """`at_w`: the cap that costs the share, its value None where even the lowest costs less.
    `saves`: the share of the energy per item that is saved there; less than 0 where more is taken.
    """

    at_w: Estimate
    saves: Estimate


def cap_cost(series: CapSeries, cost: float = COST, seed: str = "") -> CapCost:
    """The cap at which the throughput is less by `cost` than at the highest cap, and what it saves
    against that one. Two caps at least. No interval where a point has none.

    The energy of an item is the power over the throughput, so that the share that is saved is 1 -
    P(cap) / P(highest) / (1 - cost): the noise of the throughput moves the cap alone.
    """
    rate = np.log(series.rate)[:, None]
    power = None if series.power is None else np.log(series.power)[:, None]
    at, saves = _read(series.cap_w, rate, power, cost, _cubic)
    found = CapCost(_estimate(at[0], np.array([])), _estimate(saves[0], np.array([])))
    if np.isnan(series.rate_half).any() or len(series.cap_w) > _MOST or np.isnan(at[0]):
        return found
    random = generator("power-cap", seed)
    rates = rate + _noise(random, series.rate_half)
    powers = None
    if power is not None and series.power_half is not None:
        powers = power + _noise(random, series.power_half)
    drawn = [
        _read(series.cap_w, rates, powers, cost, between) for between in (_line, _cubic, _bent)
    ]
    known = powers is not None and not np.isnan(powers).any()
    return CapCost(
        _estimate(at[0], *(caps for caps, _ in drawn)),
        _of_all(saves[0], [shares for _, shares in drawn]) if known else found.saves,
    )


def isotonic(values: F64) -> F64:
    """The least-squares fit of each column that never falls along the rows: at each place the
    largest over all begins of the smallest over all ends of the mean between them.
    """
    count = len(values)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    fitted = np.empty_like(values)
    for place in range(count):
        begins, ends = np.arange(place + 1), np.arange(place + 1, count + 1)
        lengths = (ends[None, :] - begins[:, None])[:, :, None]
        means = (sums[ends][None] - sums[begins][:, None]) / lengths
        fitted[place] = means.min(axis=1).max(axis=0)
    return fitted


def _noise(random: np.random.Generator, half: F64) -> F64:
    sigma = np.log1p(half) / Z95
    return np.asarray(random.standard_normal((len(half), DRAWS)) * sigma[:, None])


Between = Callable[[F64, F64, F64], F64]
"""Values of columns at the places `grid` between those of the rows."""


def _line(places: F64, values: F64, grid: F64) -> F64:
    right = np.clip(np.searchsorted(places, grid), 1, len(places) - 1)
    share = ((grid - places[right - 1]) / (places[right] - places[right - 1]))[:, None]
    return np.asarray(values[right - 1] * (1 - share) + values[right] * share)


def _bent(places: F64, values: F64, grid: F64) -> F64:
    """The highest curve that bends down everywhere: it goes on as steeply as between the two places
    before, until it has the value of the next one.
    """
    right = np.clip(np.searchsorted(places, grid), 1, len(places) - 1)
    steps = np.diff(values, axis=0) / np.diff(places)[:, None]
    before = steps[np.maximum(right - 2, 0)]
    further = values[right - 1] + before * (grid - places[right - 1])[:, None]
    highest = np.maximum(_line(places, values, grid), np.minimum(further, values[right]))
    return np.where((right > 1)[:, None], highest, _cubic(places, values, grid))


def _cubic(places: F64, values: F64, grid: F64) -> F64:
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(places, values, axis=0)(grid))


def _read(
    cap_w: F64, rate: F64, power: F64 | None, cost: float, between: Between
) -> tuple[F64, F64]:
    """By column the cap, NaN where the lowest costs less, and the share that is saved there."""
    grid = np.linspace(cap_w[0], cap_w[-1], _GRID)
    curve = between(cap_w, isotonic(rate), grid)
    below = curve < curve[-1] + np.log1p(-cost)
    reached = below[0]
    last = np.maximum(below.sum(axis=0) - 1, 0)
    columns = np.arange(curve.shape[1])
    low, high = curve[last, columns], curve[np.minimum(last + 1, _GRID - 1), columns]
    target = curve[-1] + np.log1p(-cost)
    rise = np.where(high > low, high - low, 1.0)
    share = np.clip((target - low) / rise, 0.0, 1.0)
    at = np.where(reached, grid[last] + share * (grid[1] - grid[0]), np.nan)
    if power is None:
        return at, np.full(len(at), np.nan)
    levels = between(cap_w, power, grid)
    there = (
        levels[last, columns] * (1 - share)
        + levels[np.minimum(last + 1, _GRID - 1), columns] * share
    )
    return at, np.where(reached, 1 - np.exp(there - levels[-1]) / (1 - cost), np.nan)


def _estimate(value: float, *drawn: F64) -> Estimate:
    """With the interval that covers those of all ways to draw; an end that the data do not bound is
    None: a cap below the lowest one.
    """
    if np.isnan(value):
        return Estimate(value=None)
    ends = [_ends(one) for one in drawn if len(one)]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    return Estimate(
        value=float(value),
        low=None if not lows or None in lows else min(one for one in lows if one is not None),
        high=None if not highs or None in highs else max(one for one in highs if one is not None),
    )


def _ends(drawn: F64) -> tuple[float | None, float | None]:
    """Draws that do not reach the cost lie below all others; of those that do not, too many leave
    the low end open, and then the high one.
    """
    open_share = float(np.isnan(drawn).mean())
    known = np.sort(drawn[~np.isnan(drawn)])
    ends = []
    for level in (_TAIL, 1 - _TAIL):
        inside = (level - open_share) / (1 - open_share) if open_share < 1 else -1.0
        ends.append(float(np.quantile(known, inside)) if 0 <= inside <= 1 and len(known) else None)
    return ends[0], ends[1]


def _of_all(value: float, drawn: list[F64]) -> Estimate:
    """No interval where draws that do not reach the cost, and so save nobody knows what, are more
    than it leaves out at one end.
    """
    if any(np.isnan(one).mean() > _TAIL for one in drawn):
        return Estimate(value=float(value))
    return _estimate(value, *(one[~np.isnan(one)] for one in drawn))
