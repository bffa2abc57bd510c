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
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
_MEAN_OF = 5
_CORRELATED = 0.35
"""Of 30 independent batches, about 2.5 % show more correlation than this from one to the next."""


@dataclass(frozen=True, eq=False)
class Steady:
    """What was answered after the first `cut` requests, in batches of equal number."""

    served: Served
    cut: int
    edges: npt.NDArray[np.int64]

    def of_latency(self, figure: Callable[[F64], float], kind: int | None = None) -> Estimate:
        """A figure of all latencies (of one model's requests, if `kind` says so), in ms, with the
        interval of that of the batches.
        """
        batches = self.batches_ms(kind)
        whole = figure(np.concatenate(batches))
        return estimate(whole, np.array([figure(batch) for batch in batches if len(batch)]))

    def batches_ms(self, kind: int | None = None) -> list[F64]:
        """The latencies of each batch (of one model's requests), in ms."""
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        latency, model = self.served.latency * 1e3, self.served.model
        return [
            latency[low:high] if kind is None else latency[low:high][model[low:high] == kind]
            for low, high in pairs
        ]

    def correlated(self, figure: Callable[[F64], float]) -> bool:
        """Whether neighbouring batches are alike, so that they say less than as many others."""
        values = np.array([figure(batch) for batch in self.batches_ms()])
        apart = values - values.mean()
        spread = float(apart @ apart)
        return spread > 0 and float(apart[1:] @ apart[:-1]) / spread > _CORRELATED

    def throughput(self) -> Estimate:
        """Answers per second."""
        rates = self.rates(1)[0]
        return estimate(float(rates[0]), rates[1:])

    def rates(self, servers: int) -> tuple[F64, F64]:
        """Answers per second, and the busy time of all `servers` over their time: of all first,
        then of each batch.
        """
        ends = self._ends()
        at, busy = self.served.at[ends], self.served.busy[ends]
        time = np.concatenate([[at[-1] - at[0]], np.diff(at)])
        counts = np.concatenate([[ends[-1] - ends[0]], np.diff(ends)])
        used = np.concatenate([[busy[-1] - busy[0]], np.diff(busy)])
        return counts / time, used / time / servers

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


def estimate(whole: float, batches: F64) -> Estimate:
    """A figure with its interval by Student's t, from the same figure of each batch."""
    half = student95(len(batches) - 1) * float(batches.std(ddof=1)) / math.sqrt(len(batches))
    return Estimate(value=whole, low=max(whole - half, 0.0), high=whole + half)


def ends(estimate: Estimate) -> tuple[float, float]:
    """The interval of a simulated figure, which always has both ends."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def figure_of(name: str) -> Callable[[F64], float]:
    """What computes a percentile, or the mean, by its name."""
    if name == "mean":
        return lambda values: float(values.mean())
    return lambda values: float(np.quantile(values, SHARES[name]))
