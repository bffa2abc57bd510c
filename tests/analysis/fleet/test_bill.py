"""What requests cost, in money and in energy, against sums by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.failures import Failures
from profharness.analysis.fleet.measured import MeasuredLevel, closed, device_of, power_of
from profharness.analysis.fleet.records import Fleet, Model, OpenLoad, Power
from profharness.stats.estimate import Estimate


def watts(value: float, half: float = 0.0) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half)


FLEET = Fleet(
    devices=4,
    instances=2,
    models=(Model(service_s=(0.01,)),),
    price_per_hour=3.6,
    power=Power(watts(50), watts(250)),
)
LOAD = OpenLoad(400.0)  # half of what they serve


def test_money_and_energy_are_those_of_a_device_at_its_use() -> None:
    bill = figures(FLEET, LOAD, 1).bill
    assert bill is not None
    for found, value in (
        (bill.cost_per_million, 4 * 0.001 / 400 * 1e6),
        (bill.watts, 4 * 150.0),
        (bill.joules_per_request, 4 * 150.0 / 400),
    ):
        assert found is not None
        assert found.value == pytest.approx(value, rel=0.03)
        assert found.low is not None
        assert found.high is not None
        assert found.low < value * 1.01
        assert found.high > value * 0.99
    assert figures(replace(FLEET, price_per_hour=None, power=None), LOAD, 1).bill is None


def test_a_device_that_failed_is_paid_and_draws_nothing() -> None:
    half = Failures(100.0, 25.0)
    found, whole = (figures(FLEET, OpenLoad(100.0), 1, failures=one).bill for one in (half, None))
    assert found is not None
    assert whole is not None
    assert found.watts is not None
    assert found.cost_per_million is not None
    assert whole.cost_per_million is not None
    assert found.watts.value == pytest.approx(0.8 * 4 * 50 + 200 / 2, rel=0.02)
    assert found.cost_per_million.value == pytest.approx(whole.cost_per_million.value, rel=0.02)


def test_the_interval_of_measured_power_is_in_that_of_the_energy() -> None:
    vague = replace(FLEET, power=Power(watts(50, 10), watts(250, 50)))
    bill = figures(vague, LOAD, 1).bill
    assert bill is not None
    assert bill.joules_per_request is not None
    assert bill.joules_per_request.low == pytest.approx(1.2, rel=0.05)
    assert bill.joules_per_request.high == pytest.approx(1.8, rel=0.05)


def level(clients: int, rate: float, power: Estimate | None) -> MeasuredLevel:
    return MeasuredLevel(
        label="",
        load=closed(clients, 0.0),
        batch=1.0,
        service_s=0.01,
        outside_s=0.0,
        requests=100,
        throughput=rate,
        p99_s=None,
        executions=rate,
        power_w=power,
    )


def test_power_is_a_line_through_the_use_of_the_levels() -> None:
    levels = [level(1, 50.0, watts(100, 5)), level(2, 100.0, watts(150, 5)), level(3, 150.0, None)]
    device = device_of(levels, replace(FLEET, devices=1))
    power = power_of(levels, device, Estimate(value=50.0))
    assert power is not None
    assert power.idle.value == pytest.approx(50)
    assert power.busy.value == pytest.approx(250)
    assert power.busy.high is not None
    assert power.busy.high > 255
    alone = power_of(levels[:1], device, None)
    assert alone is not None
    assert (alone.idle.value, alone.busy.value) == (100, 100)
    assert power_of(levels[2:], device, watts(50)) is None
