"""What a fleet does under a load, and the smallest fleet that keeps a limit
(docs/fleet.md#how-it-is-computed).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from profharness.analysis.fleet.records import Fleet, FleetFigures, Latencies, Load, OpenLoad
from profharness.analysis.fleet.simulate import Simulation
from profharness.analysis.fleet.steady import Steady, ends, steady
from profharness.errors import UsageError
from profharness.rundir.latency_limit import LatencyLimit
from profharness.stats.estimate import Estimate

F64 = npt.NDArray[np.float64]
PRECISION = 0.05
"""Half of the interval of p99 over its value: the simulation goes on until it is no more."""
FIRST = 60_000
MOST = 8_000_000
_ALONE, _ALONE_OFF = 100_000, 0.02
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}


def figures(fleet: Fleet, load: Load, seed: int, limit: LatencyLimit | None = None) -> FleetFigures:
    """Simulate until p99 is known to `PRECISION`, or `MOST` requests are answered. Raises
    UsageError for a load that the fleet can never serve.
    """
    _require_capacity(fleet, load)
    return _simulated(fleet, load, seed, limit)


def smallest(fleet: Fleet, load: Load, seed: int, limit: LatencyLimit, most: int) -> FleetFigures:
    """The figures of the smallest fleet whose latency keeps the limit with its whole interval;
    `fleet.devices` does not count. Raises UsageError where one request takes longer than the limit,
    or where `most` devices do not keep it.
    """
    alone_ms = _alone_ms(fleet, limit.name)
    scatter = any(model.scatter.variation for model in fleet.models)
    if alone_ms > limit.limit_ms * (1 + scatter * _ALONE_OFF):
        raise UsageError(
            f"--latency-limit: one request takes {alone_ms:g} ms by itself",
            "no number of devices answers faster than that",
        )

    def decided(found: Estimate) -> bool:
        low, high = ends(found)
        return low > limit.limit_ms or high < limit.limit_ms * (1 - PRECISION)

    def keeps(devices: int) -> bool:
        found = _simulated(replace(fleet, devices=devices), load, seed, limit, decided).limited
        return found is not None and ends(found)[1] <= limit.limit_ms

    bad = _too_few(fleet, load)
    step, good = 1, bad + 1
    while not keeps(good):
        if good >= most:
            raise UsageError(
                f"--latency-limit: {most} devices do not keep {limit.limit_ms:g} ms",
                "accept more, or lower the load",
            )
        bad, step = good, 2 * step
        good = min(good + step, most)
    while good - bad > 1:
        middle = (bad + good) // 2
        good, bad = (middle, bad) if keeps(middle) else (good, middle)
    return figures(replace(fleet, devices=good), load, seed, limit)


def _alone_ms(fleet: Fleet, name: str) -> float:
    """The limited latency of requests that never wait, without their time outside of the server: of
    times that scatter by as many draws as say 1 % of p99.
    """
    drawn = []
    for model in fleet.models:
        factor, one_ms = model.scatter.draws(random.Random(0)), min(model.service_s) * 1e3  # noqa: S311  no secret
        count = max(round(_ALONE * model.share), 1)
        drawn += [one_ms * factor() for _ in range(count)] if factor else [one_ms] * count
    return _quantile(name)(np.array(drawn))


def _too_few(fleet: Fleet, load: Load) -> int:
    """The most devices that can never serve the load for long; 0 for clients that wait."""
    if not isinstance(load, OpenLoad):
        return 0
    return int(load.rate // replace(fleet, devices=1).capacity)


def _require_capacity(fleet: Fleet, load: Load) -> None:
    least = _too_few(fleet, load) + 1
    if fleet.devices < least:
        raise UsageError(
            f"--devices {fleet.devices}: they serve at most {fleet.capacity:.4g} requests/s, and "
            "the queue grows without end",
            f"this load needs at least {least} devices",
        )


def _simulated(
    fleet: Fleet,
    load: Load,
    seed: int,
    limit: LatencyLimit | None,
    decided: Callable[[Estimate], bool] | None = None,
) -> FleetFigures:
    """Simulate until p99 is precise, or the limited latency is `decided`."""
    simulation, more = Simulation(fleet, load, seed), FIRST
    while True:
        simulation.advance(more)
        rest = steady(simulation.served)
        p99 = rest.of_latency(_quantile("p99"))
        limited = None if limit is None else rest.of_latency(_quantile(limit.name))
        alike = not is_precise(p99, 5) and rest.correlated(_quantile("p99"))
        settled = is_precise(p99) and not alike
        done = decided is not None and limited is not None and decided(limited)
        more = len(rest.served)
        if settled or done or 2 * more > MOST:
            return _figures(fleet, rest, limited, settled)


def is_precise(estimate: Estimate, times: float = 1.0) -> bool:
    """Whether an interval so many times as wide reaches no further than `PRECISION` of the value
    from it. Batches that are alike make an interval some times too narrow, not more than five.
    """
    low, high = ends(estimate)
    return times * (high - low) <= PRECISION * (high + low)


def _figures(fleet: Fleet, rest: Steady, limited: Estimate | None, settled: bool) -> FleetFigures:
    return FleetFigures(
        devices=fleet.devices,
        utilisation=rest.utilisation(fleet.devices * fleet.instances),
        throughput=rest.throughput(),
        latency_ms=Latencies(
            p50=rest.of_latency(_quantile("p50")),
            p99=rest.of_latency(_quantile("p99")),
            mean=rest.of_latency(_quantile("mean")),
        ),
        limited=limited,
        requests=len(rest.served),
        cut=rest.cut,
        settled=settled,
    )


def _quantile(name: str) -> Callable[[F64], float]:
    """What computes a percentile, or the mean, by its name."""
    if name == "mean":
        return lambda values: float(values.mean())
    return lambda values: float(np.quantile(values, _SHARES[name]))
