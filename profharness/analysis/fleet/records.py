"""What is simulated, and what comes out, as typed records. Nothing is computed here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import msgspec

from profharness.stats.estimate import Estimate


class Policy(Enum):
    """To which device a request goes: each in turn; the one with the fewest requests in it; of two
    devices picked at random, the one with fewer (Mitzenmacher 2001).
    """

    ROUND_ROBIN = "round-robin"
    LEAST_LOADED = "least-loaded"
    RANDOM_OF_TWO = "random-of-two"


class Thinking(Enum):
    """How a client's pauses scatter."""

    EXPONENTIAL = "exponential"
    FIXED = "fixed"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """`devices` with one queue each, first come first served, for their `instances`. An instance
    takes what waits, at most `len(service_s)` requests together, and serves n of them in
    `service_s[n - 1]` seconds. With fewer than that waiting, it holds back until the oldest has
    waited for `queue_delay_s`.
    """

    devices: int
    instances: int
    service_s: tuple[float, ...]
    queue_delay_s: float = 0.0
    policy: Policy = Policy.LEAST_LOADED

    @property
    def capacity(self) -> float:
        """The most requests per second that it can serve for long."""
        best = max(number / length for number, length in enumerate(self.service_s, start=1))
        return self.devices * self.instances * best


@dataclass(frozen=True)
class OpenLoad:
    """Requests of the whole fleet that come at random, `rate` of them per second (Poisson). Each
    spends `outside_s` seconds outside of the server: on its way, and in the client.
    """

    rate: float
    outside_s: float = 0.0


@dataclass(frozen=True)
class ClosedLoad:
    """Clients that each think for a mean of `think_s` seconds, ask, and wait for the answer.
    `outside_s` is as for an open load.
    """

    clients: int
    think_s: float
    thinking: Thinking = Thinking.EXPONENTIAL
    outside_s: float = 0.0


Load = OpenLoad | ClosedLoad


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """From a request's arrival to its answer, in ms."""

    p50: Estimate
    p99: Estimate
    mean: Estimate


class FleetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet does under a load that stays, each with a 95 % interval.

    `utilisation` is the busy time of instances over the time of all, 0 to 1, `throughput` in
    requests per second. `requests` were simulated, of which the first `cut` are not in the figures.
    `settled` says whether the intervals reached the precision that was asked for. `limited` is the
    latency that a limit is about, in ms.
    """

    devices: int
    utilisation: Estimate
    throughput: Estimate
    latency_ms: Latencies
    limited: Estimate | None = None
    requests: int
    cut: int
    settled: bool
