"""A device out of measured levels, and each level forecast from the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.measured import (
    MeasuredLevel,
    closed,
    device_of,
    held_out,
    scatter_of,
)
from profharness.analysis.fleet.records import Fleet, Load, Model, OpenLoad, Scatter
from profharness.errors import UsageError

ONE = Fleet(devices=1, instances=2, models=(Model(service_s=(0.01,)),))
OUTSIDE = 0.002
TOLD = Model(service_s=(0.01,), outside_s=OUTSIDE)


def level(load: Load, *, batch: float = 1.0, service: float = 0.01) -> MeasuredLevel:
    """What a generator would measure of `ONE`, by a simulation with other random numbers."""
    found = figures(replace(ONE, models=(TOLD,)), load, seed=99)
    assert found.throughput.value is not None
    assert found.latency_ms.p99.value is not None
    return MeasuredLevel(
        label=str(load),
        load=load,
        batch=batch,
        service_s=service,
        outside_s=OUTSIDE,
        requests=5000,
        throughput=found.throughput.value,
        p99_s=found.latency_ms.p99.value / 1e3,
    )


@pytest.fixture(scope="module")
def levels() -> list[MeasuredLevel]:
    waiting = [level(closed(clients, 0.01)) for clients in (1, 2, 4, 8)]
    return [*waiting, level(closed(16, 0.0))]


def test_held_out_levels_are_forecast_as_they_were_measured(levels: list[MeasuredLevel]) -> None:
    found = held_out(levels, ONE, seed=1)
    assert len(found) == len(levels)
    for one in found:
        assert one.throughput_error == pytest.approx(0, abs=0.03)
        assert one.p99_error == pytest.approx(0, abs=0.1)
    assert held_out(levels[:2], ONE, seed=1) == ()


def test_a_wrong_service_time_shows_as_an_error(levels: list[MeasuredLevel]) -> None:
    slower = [replace(one, service_s=0.02) for one in levels]
    full = held_out(slower, ONE, seed=1)[-1]
    assert full.throughput_error == pytest.approx(-0.5, abs=0.05)


def test_times_of_batches_are_a_line_through_the_levels() -> None:
    asked = Fleet(devices=1, instances=1, models=(Model(service_s=(0.0,) * 4),))
    made = [
        level(closed(1, 0.0), batch=size, service=0.004 + 0.001 * size) for size in (1.0, 2.5, 4.0)
    ]
    device = device_of(made, asked)
    assert device.fleet.models[0].service_s == pytest.approx((0.005, 0.006, 0.007, 0.008))
    assert device.fixed_s == pytest.approx(0.004)
    alike = device_of(made[:1], asked)
    assert alike.each_s == 0
    assert alike.fleet.models[0].service_s == pytest.approx((0.005,) * 4)
    with pytest.raises(UsageError, match="no level says"):
        device_of([], asked)


def test_a_rate_above_the_capacity_is_forecast_as_the_capacity() -> None:
    flood = replace(level(OpenLoad(150.0)), load=OpenLoad(500.0), throughput=190.0)
    made = [flood, level(OpenLoad(50.0)), level(OpenLoad(100.0))]
    first = held_out(made, ONE, seed=1)[0]
    assert first.throughput_forecast.value == pytest.approx(200.0)
    assert first.p99_forecast_ms is None


def test_requests_spend_less_outside_where_few_are_under_way() -> None:
    made = [replace(level(closed(n, 0.0)), outside_s=0.001 * n) for n in (1, 4)]
    device = device_of(made, ONE)
    assert device.loaded(closed(2, 0.0)).models[0].outside_s == pytest.approx(0.002)
    assert device.loaded(closed(9, 0.0)).models[0].outside_s == pytest.approx(0.004)
    assert device.light().models[0].outside_s == pytest.approx(0.001)


def test_batches_scatter_around_their_line_as_they_were_measured() -> None:
    """Of batches of 1 to 4 the line is 5 ms + 1 ms each; the level's own clock misses 2 ms of it."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 5, 8000)
    off = rng.choice([-0.001, 0.0, 0.004], 8000, p=[0.4, 0.5, 0.1])
    seconds = 0.003 + 0.001 * sizes + off
    scatter = scatter_of(np.column_stack([sizes, seconds]), 0.005, 0.001)
    factors = np.array(scatter.factors)
    assert factors.mean() == pytest.approx(1)
    assert factors.max() == pytest.approx(1 + 0.004 / 0.006, rel=0.02)
    assert (factors > 1.3).mean() == pytest.approx(0.1, abs=0.02)
    assert scatter_of(np.ones((29, 2)), 0.005, 0.001) == Scatter()


def test_p99_of_a_level_held_out_knows_how_times_scatter() -> None:
    """One request in fifty takes six times as long: without the executions p99 is far too low."""
    factors = (0.9,) * 49 + (5.9,)
    truth = replace(ONE, models=(Model(service_s=(0.01,), scatter=Scatter(factors)),))
    made = []
    for clients in (1, 2, 4):
        found = figures(truth, closed(clients, 0.02), seed=98)
        executions = tuple((1, 0.01 * one) for one in factors * 20)
        p99 = found.latency_ms.p99.value or 0.0
        throughput = found.throughput.value or 0.0
        made.append(
            replace(
                level(closed(clients, 0.02)),
                outside_s=0.0,
                throughput=throughput,
                p99_s=p99 / 1e3,
                batches=executions,
            )
        )
    for one in held_out(made, ONE, seed=1):
        assert one.p99_error == pytest.approx(0, abs=0.1)
    blind = held_out([replace(one, batches=()) for one in made], ONE, seed=1)[0]
    assert blind.p99_error is not None
    assert blind.p99_error < -0.7
