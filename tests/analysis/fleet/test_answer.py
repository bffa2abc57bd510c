"""The smallest fleet that keeps a limit, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.fleet.answer import figures, is_precise, smallest
from profharness.analysis.fleet.records import ClosedLoad, Fleet, Model, OpenLoad
from profharness.analysis.fleet.steady import start_of
from profharness.errors import UsageError
from profharness.rundir.latency_limit import LatencyLimit

FLEET = Fleet(devices=1, instances=2, models=(Model(service_s=(0.01,)),))
LIMIT = LatencyLimit("p99", 20.0)


@pytest.mark.parametrize("load", [OpenLoad(700.0), ClosedLoad(150, 0.15)], ids=["open", "closed"])
def test_one_device_less_does_not_keep_the_limit(load: OpenLoad | ClosedLoad) -> None:
    found = smallest(FLEET, load, 0, LIMIT, 100)
    assert found.limited is not None
    assert found.limited.high is not None
    assert found.limited.high <= 20.0
    fewer = replace(FLEET, devices=found.devices - 1)
    if isinstance(load, OpenLoad) and fewer.capacity <= load.rate:
        pytest.fail("the limit asks for no more than the load itself")
    worse = figures(fewer, load, 0, LIMIT).limited
    assert worse is not None
    assert worse.high is not None
    assert worse.high > 20.0


def test_the_interval_of_p99_ends_the_simulation() -> None:
    found = figures(replace(FLEET, devices=4), OpenLoad(600.0), 1)
    assert found.settled
    assert is_precise(found.latency_ms.p99)
    assert found.cut < found.requests / 2


@pytest.mark.statistics
def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """M/D/1 at a load of 0.7: the mean by Pollaczek and Khinchine, 40 seeds."""
    one = Fleet(devices=1, instances=1, models=(Model(service_s=(0.01,)),))
    truth = 10 * (1 + 0.7 / (2 * (1 - 0.7)))
    held = 0
    for seed in range(40):
        mean = figures(one, OpenLoad(70.0), seed).latency_ms.mean
        assert mean.low is not None
        assert mean.high is not None
        held += mean.low <= truth <= mean.high
    assert held >= 33  # of 40 at 95 %, fewer come by chance once in 500


def test_the_start_is_cut() -> None:
    values = np.concatenate(
        [np.linspace(100, 1, 500), np.random.default_rng(0).normal(1, 0.1, 9500)]
    )
    assert 400 <= start_of(values) <= 700
    assert start_of(np.ones(3)) == 0


def test_a_load_that_no_queue_bears_is_refused() -> None:
    with pytest.raises(UsageError, match="queue grows without end"):
        figures(FLEET, OpenLoad(200.0), 0)
    with pytest.raises(UsageError, match="takes 10 ms by itself"):
        smallest(FLEET, OpenLoad(50.0), 0, LatencyLimit("p99", 9.0), 100)
    with pytest.raises(UsageError, match="3 devices do not keep"):
        smallest(FLEET, OpenLoad(590.0), 0, LatencyLimit("p99", 10.0001), 3)
