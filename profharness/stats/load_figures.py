"""The figures of one level of load, as typed records. Nothing is computed here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from profharness.rundir.levels import Level
from profharness.stats.estimate import Estimate
from profharness.stats.load_parts import Batches, Parts

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
SECOND_NS = 1e9


@dataclass(frozen=True)
class LatencyPercentile:
    """A percentile in ns with its interval; `value_ns` is None where fewer than ten requests lie
    beyond it.
    """

    q: float
    value_ns: float | None
    low_ns: float | None = None
    high_ns: float | None = None
    needs: str = ""


@dataclass(frozen=True)
class Latency:
    """One kind of latency over the answered requests, in ns."""

    mean: Estimate
    std_ns: float | None
    percentiles: tuple[LatencyPercentile, ...]

    def percentile(self, q: float) -> LatencyPercentile:
        """Raises StopIteration for one that is not among PERCENTILES."""
        return next(one for one in self.percentiles if one.q == q)


@dataclass(frozen=True)
class Little:
    """The check N = X (R + Z). `expected` is N, `product` X (R + Z) of the window's requests,
    `held` the mean number that was in flight or thinking in the window, which leaves out what its
    ends cut off. `tolerance` is relative.
    """

    expected: float
    product: float
    held: float
    tolerance: float

    @property
    def error(self) -> float:
        """Relative distance of what was held (closed loop) or of the product (open loop) from N."""
        return abs(self.held / self.expected - 1) if self.expected else 0.0

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Generator:
    """How the load generator itself did. Lags are sent - intended in ns, `late_share` the part of
    requests sent late (beyond 1 ms and 5 % of the median latency), `cpu_share` the CPU time per
    client process and second, `lag_share` the mean lag relative to the mean latency and think time.
    """

    sends: int
    lag_mean_ns: float
    lag_p99_ns: float
    lag_share: float
    late_share: float
    cpu_share: float | None
    cpu_ns_per_request: float | None


@dataclass(frozen=True)
class Trend:
    """Change of the second half of the window against the first, relative, and whether it is beyond
    chance (three standard errors).
    """

    throughput: float
    throughput_beyond: bool
    latency: float
    latency_beyond: bool


@dataclass(frozen=True)
class LevelFigures:
    """All figures of one level. Rates per second, times in ns. `throughput` is items/s,
    `request_rate` requests/s.

    `rate_reached` is the answered part of the requests that an open loop meant to send in the
    window; None in a closed loop.
    """

    level: Level
    requests: int
    failed: int
    items: int
    throughput: Estimate
    throughput_sem: float | None
    request_rate: float
    service: Latency | None
    corrected: Latency | None
    think_ns: float
    little: Little
    generator: Generator
    offered: int
    rate_reached: float | None
    trend: Trend | None
    batches: Batches | None
    parts: Parts | None

    @property
    def failed_share(self) -> float:
        """Failed requests among those that ended in the window."""
        ended = self.requests + self.failed
        return self.failed / ended if ended else 0.0

    @property
    def server_cores(self) -> float | None:
        """CPU cores that the server's processes used."""
        return (
            None
            if self.level.server_cpu_ns is None
            else self.level.server_cpu_ns / self.level.window_ns
        )

    @property
    def settled(self) -> bool:
        """No change within the window, and a warm-up that ended by itself or an interval narrower
        than 5 % either way.
        """
        if self.trend is not None and (self.trend.throughput_beyond or self.trend.latency_beyond):
            return False
        return self.level.steady or (self.throughput_half_width or math.inf) <= 0.05

    @property
    def throughput_half_width(self) -> float | None:
        """Half the interval of the throughput, relative to it."""
        low, high = self.throughput.low, self.throughput.high
        if low is None or high is None or not self.throughput.value:
            return None
        return (high - low) / 2 / self.throughput.value
