"""Figures of a simulation that has settled: the start is cut, and intervals come from batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.fleet.simulate import Served
from profharness.stats.bootstrap import student95
from profharness.stats.estimate import Estimate

F64 = npt.NDArray[np.float64]
BATCHES = 30
_MEAN_OF = 5
_CORRELATED = 0.35
"""Of 30 independent batches, about 2.5 % show more correlation than this from one to the next."""


@dataclass(frozen=True, eq=False)
class Steady:
    """What was answered after the first `cut` requests, in batches of equal number."""

    served: Served
    cut: int
    edges: npt.NDArray[np.int64]

    def of_latency(self, figure: Callable[[F64], float]) -> Estimate:
        """A figure of all latencies, in ms, with the interval of that of the batches."""
        ms = self.served.latency * 1e3
        whole = figure(ms[self.edges[0] : self.edges[-1]])
        return _estimate(whole, self._of_batches(ms, figure))

    def correlated(self, figure: Callable[[F64], float]) -> bool:
        """Whether neighbouring batches are alike, so that they say less than as many others."""
        values = self._of_batches(self.served.latency, figure)
        apart = values - values.mean()
        spread = float(apart @ apart)
        return spread > 0 and float(apart[1:] @ apart[:-1]) / spread > _CORRELATED

    def _of_batches(self, values: F64, figure: Callable[[F64], float]) -> F64:
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        return np.array([figure(values[low:high]) for low, high in pairs])

    def throughput(self) -> Estimate:
        """Answers per second."""
        at = self.served.at[self._ends()]
        counts = np.diff(self._ends())
        return _estimate(float(counts.sum() / (at[-1] - at[0])), counts / np.diff(at))

    def utilisation(self, servers: int) -> Estimate:
        """The busy time of all `servers` over their time."""
        at, busy = self.served.at[self._ends()], self.served.busy[self._ends()]
        whole = float((busy[-1] - busy[0]) / (at[-1] - at[0]) / servers)
        return _estimate(whole, np.diff(busy) / np.diff(at) / servers, most=1.0)

    def _ends(self) -> npt.NDArray[np.int64]:
        return np.minimum(self.edges, len(self.served) - 1)


def steady(served: Served) -> Steady:
    """The part that the start no longer shows in."""
    cut = start_of(served.latency)
    return Steady(served, cut, np.linspace(cut, len(served), BATCHES + 1).astype(np.int64))


def start_of(values: F64) -> int:
    """Where the start ends, by MSER-5 (White 1997): of means of five, the cut after which the mean
    of the rest is known best. At most half is cut.
    """
    count = len(values) // _MEAN_OF
    if count < 4:
        return 0
    means = values[: count * _MEAN_OF].reshape(count, _MEAN_OF).mean(axis=1)
    left = np.arange(count, 0, -1)
    total = np.cumsum(means[::-1])[::-1]
    square = np.cumsum((means**2)[::-1])[::-1]
    error = (square - total**2 / left) / left**2
    return int(np.argmin(error[: count // 2 + 1])) * _MEAN_OF


def _estimate(whole: float, batches: F64, most: float = math.inf) -> Estimate:
    half = student95(len(batches) - 1) * float(batches.std(ddof=1)) / math.sqrt(len(batches))
    return Estimate(value=whole, low=max(whole - half, 0.0), high=min(whole + half, most))


def ends(estimate: Estimate) -> tuple[float, float]:
    """The interval of a simulated figure, which always has both ends."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high
