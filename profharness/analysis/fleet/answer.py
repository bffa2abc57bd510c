"""What a fleet does under a load, and the smallest fleet that keeps a limit
(docs/fleet.md#how-it-is-computed).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from profharness.analysis.fleet.bill import bill_of
from profharness.analysis.fleet.failures import Failures, held_up, is_too_few, states
from profharness.analysis.fleet.over_time import OverTime, State
from profharness.analysis.fleet.records import (
    Fleet,
    FleetFigures,
    Latencies,
    Load,
    OfModel,
    OpenLoad,
    Outages,
)
from profharness.analysis.fleet.simulate import Simulation
from profharness.analysis.fleet.steady import Steady, ends, figure_of, steady
from profharness.errors import UsageError
from profharness.rundir.latency_limit import LatencyLimit
from profharness.stats.estimate import Estimate

PRECISION = 0.05
"""Half of the interval of p99 over its value: the simulation goes on until it is no more."""
FIRST = 60_000
MOST = 8_000_000
_ALONE, _ALONE_OFF = 100_000, 0.02
_P99 = figure_of("p99")
Decided = Callable[[Estimate], bool]


def figures(
    fleet: Fleet,
    load: Load,
    seed: int,
    limit: LatencyLimit | None = None,
    failures: Failures | None = None,
) -> FleetFigures:
    """Simulate until p99 is known to `PRECISION`, or `MOST` requests are answered. Raises
    UsageError for a load that the fleet can never serve.
    """
    least = _too_few(fleet, load, failures) + 1
    if fleet.devices < least:
        raise UsageError(
            f"--devices {fleet.devices}: they serve at most "
            f"{fleet.capacity * _available(failures):.4g} requests/s, and the queue grows without "
            "end",
            f"this load needs at least {least} devices",
        )
    return _Search(fleet, load, seed, limit, failures).figures(fleet.devices)


def smallest(
    fleet: Fleet,
    load: Load,
    seed: int,
    limit: LatencyLimit,
    most: int,
    failures: Failures | None = None,
) -> FleetFigures:
    """The figures of the smallest fleet whose latency keeps the limit with its whole interval;
    `fleet.devices` does not count. Raises UsageError where one request takes longer than the limit,
    or where `most` devices do not keep it.
    """
    alone_ms = _alone_ms(fleet, limit.name)
    scatter = any(model.scatter.variation for model in fleet.models)
    if alone_ms > limit.limit_ms * (1 + scatter * _ALONE_OFF):
        raise UsageError(
            f"--latency-limit: one request takes {alone_ms:.4g} ms by itself",
            "no number of devices answers faster than that",
        )
    search = _Search(fleet, load, seed, limit, failures)
    bad = _too_few(fleet, load, failures)
    step, good = 1, bad + 1
    while not search.keeps(good):
        if good >= most:
            raise UsageError(
                f"--latency-limit: {most} devices do not keep {limit.limit_ms:g} ms",
                "accept more, or lower the load",
            )
        bad, step = good, 2 * step
        good = min(good + step, most)
    while good - bad > 1:
        middle = (bad + good) // 2
        good, bad = (middle, bad) if search.keeps(middle) else (good, middle)
    return search.figures(good)


def is_precise(found: Estimate, times: float = 1.0) -> bool:
    """Whether an interval so many times as wide reaches no further than `PRECISION` of the value
    from it. Batches that are alike make an interval some times too narrow, not more than five.
    """
    low, high = ends(found)
    return times * (high - low) <= PRECISION * (high + low)


def _latencies(found: OverTime, kind: int | None = None) -> Latencies:
    return Latencies(
        p50=found.of_latency("p50", kind),
        p99=found.of_latency("p99", kind),
        mean=found.of_latency("mean", kind),
    )


def _of_models(found: OverTime) -> tuple[OfModel, ...]:
    """Each model of a mix; none of a fleet with one model."""
    models = found.fleet.models
    return tuple(
        OfModel(
            name=model.name,
            share=model.share,
            service_ms=model.service_s[0] * 1e3,
            service_cv=model.scatter.variation,
            outside_ms=model.outside_s * 1e3,
            latency_ms=_latencies(found, kind),
        )
        for kind, model in enumerate(models)
        if len(models) > 1
    )


def _alone_ms(fleet: Fleet, name: str) -> float:
    """The limited latency of requests that never wait, without their time outside of the server: of
    times that scatter by as many draws as say 1 % of p99.
    """
    drawn, source = [], random.Random(0)  # noqa: S311  no secret
    for model in fleet.models:
        factor, one_ms = model.scatter.draws(source), min(model.service_s) * 1e3
        count = max(round(_ALONE * model.share), 1)
        drawn += [one_ms * factor() for _ in range(count)] if factor else [one_ms] * count
    return figure_of(name)(np.array(drawn))


def _available(failures: Failures | None) -> float:
    return 1.0 if failures is None else failures.availability


def _too_few(fleet: Fleet, load: Load, failures: Failures | None) -> int:
    """The most devices that can never serve the load for long; 0 for clients that wait."""
    if not isinstance(load, OpenLoad):
        return 0
    return int(load.rate // (replace(fleet, devices=1).capacity * _available(failures)))


@dataclass(frozen=True, eq=False)
class _Simulated:
    rest: Steady
    settled: bool


class _Search:
    """Simulations of one load by the number of devices that work. One number is a state of many
    fleets whose devices fail, so that each is kept and only goes on.
    """

    def __init__(
        self,
        fleet: Fleet,
        load: Load,
        seed: int,
        limit: LatencyLimit | None,
        failures: Failures | None,
    ) -> None:
        self._fleet, self._load, self._seed = fleet, load, seed
        self._limit, self._failures = limit, failures
        self._kept: dict[int, Simulation] = {}

    def keeps(self, devices: int) -> bool:
        """Whether so many keep the limit with their whole interval."""
        limit = self._limit
        assert limit is not None

        def decided(found: Estimate) -> bool:
            low, high = ends(found)
            return low > limit.limit_ms or high < limit.limit_ms * (1 - PRECISION)

        found, _ = self._over_time(devices, decided)
        limited = found.of_latency(limit.name)
        return limited.high is not None and limited.high <= limit.limit_ms

    def figures(self, devices: int) -> FleetFigures:
        """Of so many devices."""
        found, settled = self._over_time(devices)
        latency = _latencies(found)
        limit = self._limit
        return FleetFigures(
            devices=devices,
            utilisation=found.utilisation(),
            throughput=found.throughput(),
            latency_ms=latency,
            limited=None if limit is None else found.of_latency(limit.name),
            requests=sum(len(one.rest.served) for one in found.states),
            cut=sum(one.rest.cut for one in found.states),
            settled=settled,
            outages=self._outages(found, latency.mean),
            bill=bill_of(found),
            models=_of_models(found),
        )

    def _outages(self, found: OverTime, mean: Estimate) -> Outages | None:
        failures, devices = self._failures, found.fleet.devices
        if failures is None:
            return None
        inside_s = max((mean.value or 0.0) / 1e3 - found.fleet.outside_s, 0.0)
        return Outages(
            mtbf_hours=failures.mtbf_s / 3600,
            repair_minutes=failures.repair_s / 60,
            all_work=failures.availability**devices,
            working=failures.availability * devices,
            held_up=found.held_up,
            requeued=inside_s / failures.mtbf_s,
        )

    def _over_time(self, devices: int, decided: Decided | None = None) -> tuple[OverTime, bool]:
        """The fleet in all states that matter, and whether the likely ones have settled."""
        fleet, load = replace(self._fleet, devices=devices), self._load
        shares = states(devices, self._failures)
        few = {up: share for up, share in shares.items() if is_too_few(fleet, up, load)}
        found, settled = [], True
        for up, share in shares.items():
            if up in few:
                continue
            one = self._simulated(up, share, decided if self._failures is None else None)
            found.append(State(up, share, one.rest))
            settled = settled and (one.settled or share < PRECISION)
        over = OverTime(fleet, tuple(found), tuple(few.items()), 0.0, isinstance(load, OpenLoad))
        rate = over.throughput().value or 0.0
        return replace(over, held_up=held_up(fleet, load, self._failures, rate)), settled

    def _simulated(self, up: int, share: float, decided: Decided | None) -> _Simulated:
        """Simulate until p99 is precise, or the limited latency is `decided`; a rare state for no
        longer than its share of time is worth.
        """
        simulation = self._kept.get(up)
        if simulation is None:
            simulation = Simulation(replace(self._fleet, devices=up), self._load, self._seed)
            simulation.advance(FIRST)
            if self._failures is not None:
                self._kept[up] = simulation
        while True:
            rest = steady(simulation.served)
            p99 = rest.of_latency(_P99)
            alike = not is_precise(p99, 5) and rest.correlated(_P99)
            settled = is_precise(p99) and not alike
            limit = self._limit
            limited = None if limit is None else rest.of_latency(figure_of(limit.name))
            done = decided is not None and limited is not None and decided(limited)
            if settled or done or 2 * len(rest.served) > max(MOST * share, FIRST):
                return _Simulated(rest, settled)
            simulation.advance(len(rest.served))
