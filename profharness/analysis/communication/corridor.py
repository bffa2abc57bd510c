"""How far a straight line between lower and upper limits can lie from zero. Pure.

The difference of two clocks that run evenly is a line in time. Each call limits it from both sides;
the lines that keep all limits are a convex set, so that the largest value that one of them takes at
a moment is found by a search over slopes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
_ROUNDS = 80  # each leaves two thirds of an interval of slopes: 1e-14 of it in the end
_PIECES = 64  # of the calls, of which the ones that limit most are kept: others only widen


def furthest(at: I64, low: I64, high: I64) -> tuple[int, int]:
    """The largest distance from zero, between the first and the last moment, of any line that keeps
    `low <= line <= high` at the moments `at` (rising, ns), in ns; and by how much the limits must
    be widened before there is one (0: not at all).
    """
    kept = _limiting(low, high)
    span = max(int(at[-1] - at[0]), 1)
    moments = (at[kept] - at[0]) / span
    lows, highs = low[kept].astype(np.float64), high[kept].astype(np.float64)
    steepest = 2.0 * float(max(np.abs(lows).max(), np.abs(highs).max(), 1.0))
    if moments[0] == moments[-1]:
        steepest = 0.0
    elif moments[-1] - moments[0] < 1.0:
        steepest /= float(moments[-1] - moments[0])

    def room(slope: float) -> float:
        rise = slope * moments
        return float((highs - rise).min() - (lows - rise).max())

    best = _peak(room, -steepest, steepest)
    short = max(-room(best) / 2, 0.0)
    lows, highs = lows - short, highs + short
    first, last = (
        (best, best) if short else (_edge(room, best, -steepest), _edge(room, best, steepest))
    )
    most = 0.0
    for moment in (0.0, 1.0):
        for above in (highs, -lows):
            # the lines below all highs, and, turned over, those above all lows
            turned = (first, last) if above is highs else (-last, -first)

            def reach(slope: float, limits: F64 = above, moment: float = moment) -> float:
                return float((limits - slope * (moments - moment)).min())

            most = max(most, reach(_peak(reach, *turned)))
    return int(np.ceil(most)), int(np.ceil(short))


def _limiting(low: I64, high: I64) -> npt.NDArray[np.intp]:
    """The first and last call, and of each piece of the others those with the least room."""
    if len(low) <= 2 * _PIECES:
        return np.arange(len(low))
    edges = np.linspace(0, len(low), _PIECES + 1).astype(int)
    chosen = {0, len(low) - 1}
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        chosen.add(begin + int(low[begin:end].argmax()))
        chosen.add(begin + int(high[begin:end].argmin()))
    return np.array(sorted(chosen))


def _peak(concave: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is largest."""
    for _ in range(_ROUNDS):
        third = (high - low) / 3
        if third <= 0:
            break
        if concave(low + third) < concave(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


def _edge(concave: Callable[[float], float], inside: float, outside: float) -> float:
    """The slope between both up to which a concave function is not negative."""
    if concave(outside) >= 0:
        return outside
    for _ in range(_ROUNDS):
        middle = (inside + outside) / 2
        if concave(middle) >= 0:
            inside = middle
        else:
            outside = middle
    return outside
