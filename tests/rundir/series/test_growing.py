"""Present values and amounts of a sampler's file that grows, against what was written into it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness.rundir.series.growing import GrowingSamples, Reading
from tests.rundir.series.growing_file import GrowingFile


def values(readings: tuple[Reading, ...]) -> dict[tuple[str, str], float]:
    return {
        (one.series.sample, "" if one.device is None else one.device.index): one.value
        for one in readings
    }


@pytest.mark.parametrize("rows_at_once", [1, 3, 7, 40])
def test_amounts_are_those_of_the_counters_however_often_one_looks(
    tmp_path: Path, rows_at_once: int
) -> None:
    growing = GrowingFile(tmp_path / "n1.samples.bin", 6.0)
    samples = GrowingSamples(tmp_path / "n1.samples.bin", 10.0)
    rng = np.random.default_rng(rows_at_once)
    sent, energy = 1 << 40, 5_000_000
    first = sent, energy
    found: dict[tuple[str, str], float] = {}
    for row in range(40):
        growing.add(sent, energy, 300 + row)
        if row % rows_at_once == 0 or row == 39:
            found = values(samples.read())
        last = sent, energy
        sent += int(rng.integers(0, 1 << 20))
        energy += int(rng.integers(10_000, 60_000))
    joules = (last[1] - first[1]) / 1000
    assert found == {
        ("profharness_telemetry_network_sent_bytes_total", ""): pytest.approx(last[0] - first[0]),
        ("omnistat_network_tx_bytes", ""): pytest.approx(last[0] - first[0]),
        ("rocm_energy_joules", "0"): pytest.approx(joules),
        ("profharness_telemetry_energy_joules_total", "1"): pytest.approx(2 * joules),
        ("rocm_average_socket_power_watts", "0"): 339,
    }


def test_a_counter_that_restarts_never_lowers_its_amount(tmp_path: Path) -> None:
    growing = GrowingFile(tmp_path / "a", 2.0)
    samples = GrowingSamples(tmp_path / "a", 10.0)
    seen = []
    for sent in (1000, 1500, 20, 120, 170):
        growing.add(sent, 10, 1)
        seen.append(values(samples.read()).get(("omnistat_network_tx_bytes", "")))
    assert seen[1:] == [pytest.approx(amount) for amount in (500, 500, 600, 650)]


def test_values_that_are_old_are_not_the_present_ones(tmp_path: Path) -> None:
    assert GrowingSamples(tmp_path / "none", 10.0).read() == ()
    growing = GrowingFile(tmp_path / "old", 60.0)
    growing.add(1, 1, 1)
    growing.add(2, 2, 2)
    assert GrowingSamples(tmp_path / "old", 10.0).read() == ()
