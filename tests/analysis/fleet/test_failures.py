"""Devices that fail: a binomial distribution, and the fleet against one whose devices fail in the
simulation.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.fleet.answer import figures, smallest
from profharness.analysis.fleet.failures import REST, Failures, held_up, states
from profharness.analysis.fleet.records import ClosedLoad, Fleet, Model, OpenLoad
from profharness.errors import UsageError
from profharness.rundir.latency_limit import LatencyLimit

D = 0.01
FLEET = Fleet(devices=4, instances=1, models=(Model(service_s=(D,)),))
OFTEN = Failures(mtbf_s=100.0, repair_s=10.0)
SOONER = Failures(mtbf_s=20.0, repair_s=2.0)


def test_as_many_devices_work_as_a_binomial_distribution_says() -> None:
    from scipy.stats import binom

    found = states(100, Failures(mtbf_s=999.0, repair_s=1.0))
    assert list(found)[:2] == [100, 99]
    assert sum(found.values()) >= 1 - REST
    for up, share in found.items():
        assert share == pytest.approx(binom.pmf(up, 100, 0.999))
    assert states(3, None) == {3: 1.0}
    whole = states(3, Failures(1.0, 1.0))
    assert whole == pytest.approx({0: 1 / 8, 1: 3 / 8, 2: 3 / 8, 3: 1 / 8})


def failing(
    fleet: Fleet, rate: float, failures: Failures, seconds: float
) -> tuple[np.ndarray, float]:
    """Latencies in ms of a fleet whose devices fail as they go, after the first 5 %, and the share
    of requests that were on one that failed: all of these go to the others, those in service first.
    """
    source, events, order = random.Random(11), [], iter(range(10**9))
    up, serving = [True] * fleet.devices, [0] * fleet.devices  # what each serves, by its number
    queues = [deque[tuple[float, int]]() for _ in up]
    latencies, moved, came_in = [], 0, 0

    def at(when: float, what: str, device: int, number: int) -> None:
        heapq.heappush(events, (when, next(order), what, device, number))

    def start(device: int, now: float) -> None:
        if queues[device] and not serving[device]:
            serving[device] = next(order) + 1
            at(now + D, "end", device, serving[device])

    def put(requests: list[tuple[float, int]], now: float) -> None:
        for one in requests:
            free = [device for device, works in enumerate(up) if works]
            if not free:
                waiting.append(one)
                continue
            device = min(free, key=lambda number: len(queues[number]))
            queues[device].append(one)
            start(device, now)

    waiting: list[tuple[float, int]] = []
    at(0.0, "come", 0, 0)
    for device in range(fleet.devices):
        at(source.expovariate(1 / failures.mtbf_s), "fail", device, 0)
    now = 0.0
    while now < seconds:
        now, _, what, device, number = heapq.heappop(events)
        if what == "come":
            came_in += 1
            put([(now, came_in)], now)
            at(now + source.expovariate(rate), "come", 0, 0)
        elif what == "end" and serving[device] == number:
            came, _ = queues[device].popleft()
            serving[device] = 0
            latencies.append((now, (now - came) * 1e3))
            start(device, now)
        elif what == "fail":
            up[device], serving[device] = False, 0
            left = list(queues[device])
            queues[device].clear()
            moved += len(left)
            put(left, now)
            at(now + source.expovariate(1 / failures.repair_s), "repair", device, 0)
        elif what == "repair":
            up[device] = True
            left, waiting = waiting, []
            put(left, now)
            at(now + source.expovariate(1 / failures.mtbf_s), "fail", device, 0)
    found = np.array(latencies)
    return found[found[:, 0] > seconds / 20, 1], moved / came_in


@pytest.mark.slow
def test_states_that_are_weighted_are_as_a_fleet_whose_devices_fail() -> None:
    """Failures are rare against requests: one comes each five seconds, a request takes 10 ms."""
    rate = 130.0  # two devices bear it, one does not
    found = figures(FLEET, OpenLoad(rate), 2, failures=SOONER)
    latency, _ = failing(FLEET, rate, SOONER, 5000.0)
    assert found.outages is not None
    longest = float((latency > 60).mean())  # the first of a backlog wait for less
    assert longest < found.outages.held_up < 3 * longest
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        limited = figures(FLEET, OpenLoad(rate), 2, LatencyLimit(name, 1.0), SOONER).limited
        assert limited is not None
        assert limited.value == pytest.approx(float(np.quantile(latency, share)), rel=0.15), name
    alone = figures(FLEET, OpenLoad(rate), 2).latency_ms.p99.value
    assert alone is not None
    assert alone < 0.9 * (found.latency_ms.p99.value or 0.0)


@pytest.mark.slow
def test_as_many_requests_start_again_as_were_on_a_device_that_failed() -> None:
    found = figures(FLEET, OpenLoad(80.0), 2, failures=SOONER).outages
    _, moved = failing(FLEET, 80.0, SOONER, 4000.0)
    assert found is not None
    assert found.requeued == pytest.approx(moved, rel=0.3)


def test_failures_lower_the_use_of_devices_and_not_the_answers_to_a_rate() -> None:
    found = figures(FLEET, OpenLoad(150.0), 2, failures=OFTEN)
    assert found.throughput.value == pytest.approx(150, rel=0.03)
    assert found.utilisation.value == pytest.approx(150 * D / 4, rel=0.03)
    assert found.outages is not None
    assert found.outages.working == pytest.approx(4 / 1.1)
    assert found.outages.all_work == pytest.approx(1.1**-4)


def test_clients_of_a_lone_device_get_no_answer_while_it_is_repaired() -> None:
    one = replace(FLEET, devices=1)
    half = Failures(100.0, 100.0)
    found, whole = (
        figures(one, ClosedLoad(4, 0.1), 2, failures=failures) for failures in (half, None)
    )
    assert found.throughput.value == pytest.approx((whole.throughput.value or 0.0) / 2, rel=0.01)
    assert found.utilisation.value == pytest.approx((whole.utilisation.value or 0.0) / 2, rel=0.01)
    rate = found.throughput.value or 0.0
    assert held_up(one, ClosedLoad(4, 0.1), half, rate) == pytest.approx(4 / 200 / rate)


def test_a_fleet_that_fails_needs_more_devices() -> None:
    limit = LatencyLimit("p99", 25.0)
    load = OpenLoad(150.0)
    never = smallest(FLEET, load, 0, limit, 50)
    often = smallest(FLEET, load, 0, limit, 50, OFTEN)
    assert often.devices > never.devices
    fewer = figures(replace(FLEET, devices=often.devices - 1), load, 0, limit, OFTEN).limited
    assert fewer is not None
    assert fewer.high is None or fewer.high > 25.0


def test_too_few_working_devices_leave_p99_without_a_bound() -> None:
    found = figures(replace(FLEET, devices=2), OpenLoad(150.0), 2, LatencyLimit("p99", 50), OFTEN)
    assert found.limited is not None
    assert found.limited.value is None
    assert found.latency_ms.p50.value is not None
    with pytest.raises(UsageError, match=r"at most 181\.8 requests/s"):
        figures(replace(FLEET, devices=2), OpenLoad(190.0), 2, failures=OFTEN)
