"""Figures of hardware counters over the pass that read them."""

from __future__ import annotations

import pytest

from profharness.analysis.power.run_telemetry import counted_figures
from profharness.rundir.manifest import PassRecord
from profharness.stats.streams import Stream
from profharness.trace.model import Samples
from tests.analysis.run.run_scene import manifest

SECOND = 1_000_000_000


def test_counters_are_of_the_time_in_which_the_points_were_measured() -> None:
    """As the driver's busy share is, beside which they are judged: a model that loads for long
    leaves compute units idle, and no point is to blame.
    """
    active = Samples.build(
        10,
        at_ns=[second * SECOND for second in range(10)],
        until_ns=[second * SECOND for second in range(1, 11)],
        value=[0.0] * 8 + [0.9] * 2,
        device=0,
        metric=0,
        source=0,
    )
    streams = (Stream("cu_active", "0", active),)
    record = PassRecord(
        name="torch+device-counters",
        layers=("torch", "device-counters"),
        start_boot_ns=0,
        end_boot_ns=10 * SECOND,
    )
    points = {record.name: [(8 * SECOND, 9 * SECOND), (9 * SECOND, 10 * SECOND)]}
    found = counted_figures(manifest(passes=(record,)), streams, lambda name: points[name])
    assert found["cu_active"].value == pytest.approx(0.9)
    found = counted_figures(manifest(passes=(record,)), streams, lambda _: ())
    assert found["cu_active"].value == pytest.approx(0.18), "a command without points: all of it"
