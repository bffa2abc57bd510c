"""Several models on the same devices, against queueing theory and by hand."""

from __future__ import annotations

import pytest

from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.records import ClosedLoad, Fleet, Model, OpenLoad
from profharness.analysis.fleet.simulate import Simulation

SHORT = Model(service_s=(0.01,), name="short", share=0.7)
LONG = Model(service_s=(0.03,), name="long", share=0.3)
FLEET = Fleet(devices=1, instances=1, models=(SHORT, LONG))


def test_a_mix_of_two_times_is_as_queueing_theory_says() -> None:
    """M/G/1 by Pollaczek and Khinchine; both models wait for as long."""
    rate, mean, square = 40.0, 0.016, 0.7 * 0.01**2 + 0.3 * 0.03**2
    assert FLEET.alone_s == pytest.approx(mean)
    assert FLEET.capacity == pytest.approx(1 / mean)
    assert FLEET.variation**2 == pytest.approx(square / mean**2 - 1)
    found = figures(FLEET, OpenLoad(rate), 3)
    wait = rate * square / (2 * (1 - rate * mean)) * 1e3
    assert found.latency_ms.mean.value == pytest.approx(mean * 1e3 + wait, rel=0.05)
    assert found.utilisation.value == pytest.approx(rate * mean, rel=0.05)
    for one, ms in zip(found.models, (10, 30), strict=True):
        assert one.service_ms == ms
        assert one.latency_ms.mean.value == pytest.approx(ms + wait, rel=0.05)
    assert [one.name for one in found.models] == ["short", "long"]
    assert figures(Fleet(devices=1, instances=1, models=(SHORT,)), OpenLoad(20.0), 3).models == ()


def test_a_batch_is_of_one_model() -> None:
    """Four at a time of each: a device that served them across models would do 400 a second."""
    models = tuple(
        Model(service_s=(0.01,) * 4, name=name, share=share)
        for name, share in (("a", 0.5), ("b", 0.5))
    )
    simulation = Simulation(
        Fleet(devices=1, instances=1, models=models), ClosedLoad(4, 0.0), seed=1
    )
    simulation.advance(8000)
    served = simulation.served
    assert (served.model == 1).mean() == pytest.approx(0.5, abs=0.05)
    ends = served.at
    together = [
        set(served.model[first : first + 4][ends[first : first + 4] == ends[first]].tolist())
        for first in range(len(served))
    ]
    assert all(len(kinds) == 1 for kinds in together)
    assert len(served) / ends[-1] < 330
