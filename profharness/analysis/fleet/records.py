"""What is simulated, and what comes out, as typed records. Nothing is computed here."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
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


@dataclass(frozen=True)
class Scatter:
    """How times scatter around their mean: each is the mean times one of the `factors`, all equally
    likely, whose mean is 1; without any, they are gamma distributed with the coefficient of
    variation `cv`, and constant where that is 0.
    """

    factors: tuple[float, ...] = ()
    cv: float = 0.0

    def draws(self, source: random.Random) -> Callable[[], float] | None:
        """What draws the next factor; None for constant times."""
        if self.factors:
            factors, count, draw = self.factors, len(self.factors), source.random
            return lambda: factors[int(draw() * count)]
        if not self.cv:
            return None
        shape, gamma = 1 / self.cv**2, source.gammavariate
        return lambda: gamma(shape, 1 / shape)

    @property
    def variation(self) -> float:
        """Standard deviation over the mean."""
        if not self.factors:
            return self.cv
        square = math.fsum((one - 1) ** 2 for one in self.factors) / len(self.factors)
        return math.sqrt(square)


CONSTANT = Scatter()


@dataclass(frozen=True, kw_only=True)
class Model:
    """What an instance does with the requests for one model: it takes at most `len(service_s)`
    together, and serves n of them in `service_s[n - 1]` seconds on average. With fewer than that
    waiting, it holds back until the oldest has waited for `queue_delay_s`. A request spends
    `outside_s` seconds outside of the server: on its way, and in the client.
    """

    service_s: tuple[float, ...]
    scatter: Scatter = CONSTANT
    queue_delay_s: float = 0.0
    outside_s: float = 0.0
    name: str = ""
    share: float = 1.0
    """Of all requests, those for this model."""

    @property
    def least_s(self) -> float:
        """Seconds of an instance for one request, in the best batch."""
        return min(length / number for number, length in enumerate(self.service_s, start=1))


@dataclass(frozen=True)
class Power:
    """What a device draws in W: while nothing runs on it, and while all of its instances work."""

    idle: Estimate
    busy: Estimate


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """`devices` with one queue each, first come first served, for their `instances`, each of which
    serves all `models`, one at a time. An hour of a device costs `price_per_hour`.
    """

    devices: int
    instances: int
    models: tuple[Model, ...]
    policy: Policy = Policy.LEAST_LOADED
    price_per_hour: float | None = None
    power: Power | None = None

    @property
    def capacity(self) -> float:
        """The most requests per second that it can serve for long."""
        return self.devices * self.instances / self.request_s

    @property
    def alone_s(self) -> float:
        """Mean seconds of an instance for a request that is served alone."""
        return sum(model.share * model.service_s[0] for model in self.models)

    @property
    def variation(self) -> float:
        """Standard deviation of these seconds over their mean."""
        square = sum(
            model.share * model.service_s[0] ** 2 * (1 + model.scatter.variation**2)
            for model in self.models
        )
        return math.sqrt(max(square / self.alone_s**2 - 1, 0.0))

    @property
    def outside_s(self) -> float:
        """Mean seconds of a request outside of the server."""
        return sum(model.share * model.outside_s for model in self.models)

    @property
    def request_s(self) -> float:
        """Mean seconds of an instance for a request, in the best batches."""
        return sum(model.share * model.least_s for model in self.models)


@dataclass(frozen=True)
class OpenLoad:
    """Requests of the whole fleet that come at random, `rate` of them per second (Poisson)."""

    rate: float


@dataclass(frozen=True)
class ClosedLoad:
    """Clients that each think for a mean of `think_s` seconds, ask, and wait for the answer."""

    clients: int
    think_s: float
    thinking: Thinking = Thinking.EXPONENTIAL


Load = OpenLoad | ClosedLoad


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """From a request's arrival to its answer, in ms."""

    p50: Estimate
    p99: Estimate
    mean: Estimate


class OfModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a mix: its share of the requests, what one takes by itself, and its latency."""

    name: str
    share: float
    service_ms: float
    service_cv: float
    outside_ms: float
    latency_ms: Latencies


class Outages(msgspec.Struct, frozen=True, kw_only=True):
    """What failures of devices do: in which share of time `all_work`, how many are `working` on
    average, which share of requests is `held_up` by too few of them, and which is `requeued`, since
    it was on a device that failed.
    """

    mtbf_hours: float
    repair_minutes: float
    all_work: float
    working: float
    held_up: float
    requeued: float


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What requests cost: a million of them in the unit of the price, each in J, and the power of
    the whole fleet in W. None where the price or the power is not known.
    """

    cost_per_million: Estimate | None = None
    joules_per_request: Estimate | None = None
    watts: Estimate | None = None


class FleetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet does under a load that stays, each with a 95 % interval.

    `utilisation` is the busy time of instances over the time of all, 0 to 1, `throughput` in
    requests per second. `requests` were simulated, of which the first `cut` are not in the figures.
    `settled` says whether the intervals reached the precision that was asked for. `limited` is the
    latency that a limit is about, in ms; a latency that failures leave without a bound is None.
    """

    devices: int
    utilisation: Estimate
    throughput: Estimate
    latency_ms: Latencies
    limited: Estimate | None = None
    requests: int
    cut: int
    settled: bool
    outages: Outages | None = None
    bill: Bill | None = None
    models: tuple[OfModel, ...] = ()
