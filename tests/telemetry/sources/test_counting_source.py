"""The source `device-counters` over a counting process that is only played."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from profharness.telemetry.sampler import MAX_FAILURES
from profharness.telemetry.sources import Target
from profharness.telemetry.sources.amd.counting.helper import HELD, HelperEndedError
from profharness.telemetry.sources.amd.counting.preflight import Preflight, countable
from profharness.telemetry.sources.amd.counting.source import VAIN, DeviceCountersSource
from profharness.telemetry.sources.amd.devices import find_dies
from tests.telemetry import emulated


@pytest.fixture
def source(tmp_path: Path) -> DeviceCountersSource:
    """Of an MI300X, begun by a gate."""
    sysfs = str(emulated.mi300x(tmp_path / "sys").root)
    devices = tuple(countable(die, sysfs) for die in find_dies(sysfs))
    found = Preflight("full", "", devices)  # type: ignore[arg-type]  # none is refused here
    return DeviceCountersSource(
        found, Target(0, "", 10.0, sysfs, counting_gate=str(tmp_path / "gate"))
    )


def played(source: DeviceCountersSource, why: str = "", *warnings: str) -> dict[str, str]:
    """What the source says of itself once the process has answered."""
    state = {"gpu_id": 60000, "why": why, "dropped": []}
    helper = SimpleNamespace(
        hello={"sdk": "1.1.0", "devices": [state]}, warnings=lambda: warnings, why=""
    )
    source._helper = helper  # type: ignore[assignment]  # stands for the real one
    return dict(source.facts())


def test_a_device_that_is_found_out_after_the_beginning_is_named(
    source: DeviceCountersSource,
) -> None:
    """With a gate, counting begins long after the sampler has said what there is."""
    assert "missing.device-counters:0000:c1:00.0" not in dict(source.facts())
    said = played(source, "counting cannot be started here: status 7")
    assert said["missing.device-counters:0000:c1:00.0"] == (
        "counting cannot be started here: status 7"
    )


def test_another_profiler_is_a_fact_of_the_device(source: DeviceCountersSource) -> None:
    facts = json.loads(played(source, "", HELD)["device-counters.0000:c1:00.0"])
    assert (facts["shared"], facts["why"]) == (True, HELD)
    assert not json.loads(played(source)["device-counters.0000:c1:00.0"])["shared"]


def test_counting_ends_where_no_sample_can_be_taken(source: DeviceCountersSource) -> None:
    """The sampler leaves a source alone after ten failed reads: nobody would close the gate."""
    closed: list[bool] = []
    helper = SimpleNamespace(
        troubles=0, trouble="status 9", hello={}, why="", close=lambda: closed.append(True)
    )
    helper.take = lambda: setattr(helper, "troubles", helper.troubles + 1) or []
    source._helper = helper  # type: ignore[assignment]  # stands for the real one
    Path(source._target.counting_gate).touch()
    for _ in range(VAIN - 1):
        with pytest.raises(ValueError, match="status 9"):
            source.read([], 0)
    assert not closed
    with pytest.raises(HelperEndedError, match="no sample could be taken any more: status 9"):
        source.read([], 0)
    assert closed
    source.read([], 0)
    assert MAX_FAILURES > VAIN
