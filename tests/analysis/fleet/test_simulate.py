"""The simulated fleet against queueing theory, and request by request against SimPy."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.records import (
    ClosedLoad,
    Fleet,
    FleetFigures,
    Load,
    Model,
    OpenLoad,
    Policy,
    Scatter,
    Thinking,
)
from profharness.analysis.fleet.simulate import Simulation
from profharness.stats.estimate import Estimate
from tests import needs, queueing

D = 0.01
ONE = Fleet(devices=1, instances=1, models=(Model(service_s=(D,)),))


def ms(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


@pytest.fixture(scope="module")
def queue() -> Callable[[int, float], FleetFigures]:
    """Figures of one device with so many instances at this load of each."""

    def made(instances: int, load: float) -> FleetFigures:
        fleet = replace(ONE, instances=instances)
        return figures(fleet, OpenLoad(load * instances / D), seed=instances)

    return made


@pytest.mark.parametrize(("instances", "load"), [(1, 0.5), (1, 0.8), (2, 0.8), (8, 0.9)])
def test_constant_service_is_as_queueing_theory_says(
    queue: Callable[[int, float], FleetFigures], instances: int, load: float
) -> None:
    found = queue(instances, load)
    assert found.settled
    x, probability = queueing.stationary_waiting(instances, load)
    wait = float(((1 - probability) * np.gradient(x)).sum())
    assert ms(found.latency_ms.mean) == pytest.approx((1 + wait) * D * 1e3, rel=0.05)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        theory = queueing.stationary_quantile(instances, load, share) * D * 1e3
        tolerance = 0.1 if name == "p99" else 0.05
        assert ms(getattr(found.latency_ms, name)) == pytest.approx(theory, rel=tolerance), name
    assert ms(found.utilisation) == pytest.approx(load, rel=0.05)
    assert ms(found.throughput) == pytest.approx(load * instances / D, rel=0.05)


def test_times_that_scatter_are_as_queueing_theory_says() -> None:
    """M/M/1 (a gamma distribution with a coefficient of variation of 1 is exponential) has latencies
    that are exponential too; the mean of M/G/1 is by Pollaczek and Khinchine.
    """
    load = OpenLoad(0.6 / D)
    found = figures(replace(ONE, models=(Model(service_s=(D,), scatter=Scatter(cv=1.0)),)), load, 3)
    mean = D / (1 - 0.6) * 1e3
    assert ms(found.latency_ms.mean) == pytest.approx(mean, rel=0.05)
    assert ms(found.latency_ms.p99) == pytest.approx(-mean * np.log(0.01), rel=0.1)
    factors = (0.5, 0.5, 0.5, 2.5)
    told = Model(service_s=(D,), scatter=Scatter(factors))
    square = told.scatter.variation**2
    assert square == pytest.approx(np.var(factors))
    found = figures(replace(ONE, models=(told,)), load, 4)
    mean = D * (1 + 0.6 * (1 + square) / (2 * (1 - 0.6))) * 1e3
    assert ms(found.latency_ms.mean) == pytest.approx(mean, rel=0.05)
    assert ms(found.utilisation) == pytest.approx(0.6, rel=0.05)


@pytest.mark.parametrize("clients", [1, 40, 68, 136])
def test_clients_that_wait_keep_the_bounds_of_a_closed_loop(clients: int) -> None:
    """Littles law holds for clients in thought and in the queue together, and the throughput lies
    between that of the least favourable order and the asymptotes (Denning and Buzen 1978).
    """
    think = 67 * D
    found = figures(ONE, ClosedLoad(clients, think), seed=1)
    rate, latency = ms(found.throughput), ms(found.latency_ms.mean) / 1e3
    assert rate * (think + latency) == pytest.approx(clients, rel=0.02)
    assert rate <= min(clients / (think + D), 1 / D) * 1.02
    assert rate >= clients / (think + clients * D) * 0.98
    assert rate == pytest.approx(closed_theory(clients, think), rel=0.05)


def closed_theory(clients: int, think: float) -> float:
    """The throughput of a machine-repair model with constant service: M/D/1 with a finite source,
    by the chain of the number that wait when a service ends.
    """
    inside = np.zeros(clients)  # left behind at the end of a service
    inside[0] = 1
    rows = np.zeros((clients, clients))
    leaves = 1 - np.exp(-D / think)  # of a client in thought, to ask within one service
    for behind in range(clients):
        waiting = max(behind, 1)  # with nobody left, the next one to come is served
        thinking = clients - waiting
        for coming in range(thinking + 1):
            rows[behind, waiting - 1 + coming] += _binomial(thinking, coming, leaves)
    for _ in range(20_000):
        then = inside @ rows
        if np.abs(then - inside).max() < 1e-12:
            break
        inside = then
    return float(1 / (D + inside[0] * think / clients))


def _binomial(count: int, chosen: int, chance: float) -> float:
    from scipy.stats import binom

    return float(binom.pmf(chosen, count, chance))


def with_simpy(fleet: Fleet, load: Load, seed: int, requests: int) -> list[float]:
    """Latencies of the first answered requests by SimPy, with the same random numbers."""
    import simpy

    world, source = simpy.Environment(), random.Random(seed)
    devices = [simpy.Resource(world, fleet.instances) for _ in range(fleet.devices)]
    inside, latencies, turn = [0] * fleet.devices, [], [0]

    def pick() -> int:
        if fleet.devices == 1:
            return 0
        if fleet.policy is Policy.LEAST_LOADED:
            return inside.index(min(inside))
        if fleet.policy is Policy.ROUND_ROBIN:
            turn[0] += 1
            return (turn[0] - 1) % fleet.devices
        one, other = source.randrange(fleet.devices), source.randrange(fleet.devices - 1)
        other += other >= one
        return one if inside[one] <= inside[other] else other

    def asked() -> Generator[simpy.Event, None, None]:
        came, device = world.now, pick()
        inside[device] += 1
        with devices[device].request() as turn_of_mine:
            yield turn_of_mine
            yield world.timeout(fleet.models[0].service_s[0])
        inside[device] -= 1
        latencies.append(world.now - came)

    def pause(mean: float) -> float:
        return float(-mean * np.log(1 - source.random()))

    def arrivals(rate: float) -> Generator[simpy.Event, None, None]:
        yield world.timeout(pause(1 / rate))
        while True:
            world.process(asked())
            yield world.timeout(0)  # the request picks its device first
            yield world.timeout(pause(1 / rate))

    def client(first: float, mean: float) -> Generator[simpy.Event, None, None]:
        yield world.timeout(first)
        while True:
            yield world.process(asked())
            yield world.timeout(pause(mean))

    if isinstance(load, OpenLoad):
        world.process(arrivals(load.rate))
    else:
        for first in [pause(load.think_s) for _ in range(load.clients)]:
            world.process(client(first, load.think_s))
    while len(latencies) < requests:
        world.step()
    return latencies


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("load", [OpenLoad(450.0), ClosedLoad(40, 0.05)], ids=["open", "closed"])
def test_each_request_takes_as_long_as_in_simpy(load: Load, policy: Policy) -> None:
    needs.packages("simpy")
    fleet = Fleet(devices=3, instances=2, models=(Model(service_s=(D,)),), policy=policy)
    simulation = Simulation(fleet, load, seed=7)
    simulation.advance(3000)
    own = simulation.served.latency[:3000]
    np.testing.assert_allclose(own, with_simpy(fleet, load, 7, 3000)[:3000], atol=1e-9)
    assert own.max() > 2 * D  # some waited


def test_what_waits_is_served_together() -> None:
    """One device, batches of at most four that take no longer than one: under a flood four leave
    at a time.
    """
    fleet = Fleet(devices=1, instances=1, models=(Model(service_s=(D, D, D, D)),))
    assert fleet.capacity == pytest.approx(4 / D)
    simulation = Simulation(fleet, ClosedLoad(8, 0.0), seed=0)
    simulation.advance(4000)
    served = simulation.served
    assert len(served) / served.at[-1] == pytest.approx(4 / D, rel=0.01)
    assert served.busy[-1] == pytest.approx(served.at[-1], rel=0.01)


def test_a_device_holds_back_for_more_and_not_longer() -> None:
    """A lone client never has company: each of its requests waits for the whole delay."""
    fleet = Fleet(devices=1, instances=1, models=(Model(service_s=(D, D), queue_delay_s=0.004),))
    simulation = Simulation(fleet, ClosedLoad(1, 0.1), seed=0)
    simulation.advance(50)
    np.testing.assert_allclose(simulation.served.latency, D + 0.004)
    two = Simulation(fleet, ClosedLoad(2, 0.0, Thinking.FIXED), seed=0)
    two.advance(50)
    np.testing.assert_allclose(two.served.latency, D)


def test_the_same_seed_gives_the_same_requests() -> None:
    def latencies(seed: int) -> list[float]:
        simulation = Simulation(replace(ONE, devices=2), OpenLoad(150.0), seed)
        simulation.advance(200)
        return list(simulation.served.latency)

    assert latencies(3) == latencies(3) != latencies(4)
