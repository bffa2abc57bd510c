"""The last minutes of a sampler's file that grows, against a reading of the whole file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.rundir.series.present import Present
from profharness.rundir.series.recent import RecentSamples, recent_of
from tests.rundir.series.growing_file import GrowingFile

WANTED = ("power_w", "power_energy")


def whole(path: Path, metric: str, device: int) -> list[float]:
    trace = telemetry.read(path)
    samples = trace.samples
    rows = (samples.metric == trace.strings.find(metric)) & (samples.device == device)
    return list(samples.value[rows].tolist())


@pytest.mark.parametrize("rows_at_once", [1, 3, 7, 40])
def test_what_is_read_bit_by_bit_is_what_the_whole_file_holds(
    tmp_path: Path, rows_at_once: int
) -> None:
    path = tmp_path / "n1.samples.bin"
    growing = GrowingFile(path, 6.0)
    samples = RecentSamples(path, WANTED)
    rng = np.random.default_rng(rows_at_once)
    energy = 5_000_000
    for row in range(40):
        growing.add(row, energy, 300 + row)
        energy += int(rng.integers(10_000, 60_000))
        if row % rows_at_once == 0:
            samples.read()
    found = {(one.metric, one.device): one.value.tolist() for one in samples.read()}
    assert found["power_w", "0"] == whole(path, "power_w", 0) == list(map(float, range(300, 340)))
    assert {metric for metric, _ in found} == set(WANTED)
    for (metric, device), values in found.items():
        assert values == pytest.approx(whole(path, metric, int(device)))


def test_a_file_that_is_missing_or_cut_in_its_header_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "n1.samples.bin"
    assert recent_of(path, WANTED) is None
    GrowingFile(path, 6.0)
    path.write_bytes(path.read_bytes()[:40])
    assert recent_of(path, WANTED) is None


def test_the_terminal_hears_of_the_time_since_it_last_asked(tmp_path: Path) -> None:
    path = tmp_path / "n1.samples.bin"
    present = Present(path)
    assert present.words() == ""
    growing = GrowingFile(path, 6.0)
    for power in (100, 200, 300):
        growing.add(0, 0, power)
    assert "200 W" in present.words()
    assert present.words() == ""
    growing.add(0, 0, 500)
    growing.add(0, 0, 700)
    assert "600 W" in present.words()
