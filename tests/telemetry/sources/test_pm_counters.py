"""The node's own meter over an emulated /sys/cray/pm_counters."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import MODULE, packages
from profharness.stats.streams import streams
from profharness.telemetry.files import AppendFile
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sampler import Rows
from profharness.telemetry.sources.host import pm_counters
from profharness.telemetry.sources.host.pm_counters import (
    HOST_METRICS,
    PmCountersSource,
    StampFit,
    parsed,
)
from profharness.trace.sample_metrics import metric_of

TENTH = 100_000_000
WATTS = {"power": 800, "cpu": 120, "memory": 40, "accel0": 300, "accel1": 100}


def meter(root: Path, number: int, seconds: float, cap: int = 0, at_us: int = 0) -> None:
    """All files as the meter leaves them after `seconds` of constant power, in its refresh
    `number`.
    """
    folder = root / "cray/pm_counters"
    folder.mkdir(parents=True, exist_ok=True)
    now = f"{at_us or time.time_ns() // 1000} us"
    texts = {
        "freshness": f"{number}",
        "generation": f"{cap}",
        "version": "2",
        "raw_scan_hz": "10",
        "power_cap": f"{cap} W {now}",
        "accel0_power_cap": f"0 W {now}",
        "power": f"{WATTS['power']} W {now}",
        "energy": f"{round(WATTS['power'] * seconds)} J {now}",
        "cpu_power": f"{WATTS['cpu']} W {now}",
        "cpu_energy": f"{round(WATTS['cpu'] * seconds)} J {now}",
        "memory_energy": f"{round(WATTS['memory'] * seconds)} J {now}",
    }
    for module in ("accel0", "accel1"):
        texts |= {
            f"{module}_power": f"{WATTS[module]} W {now}",
            f"{module}_energy": f"{round(WATTS[module] * seconds)} J {now}",
        }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n")


def read(source: PmCountersSource) -> dict[str, int | float]:
    row: list[int | float] = [-1] * len(source.columns)
    source.read(row, 0)
    return {
        column.metric or column.role: raw
        for column, raw in zip(source.columns, row, strict=True)
        if raw != -1
    }


def test_every_file_in_its_unit_and_once_per_refresh(tmp_path: Path) -> None:
    meter(tmp_path, 7, 10.0, cap=1500)
    source = PmCountersSource(str(tmp_path))
    assert source.probe() == ()
    found = read(source)
    assert abs(found.pop("stamp") - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) < 5e9
    assert found == {
        "power_node": 800,
        "power_node_energy": 8000,
        "power_cpu_energy": 1200,
        "power_memory_energy": 400,
        "power_node_limit": 1500,
        "power_module:accel0": 300,
        "power_module_energy:accel0": 3000,
        "power_module:accel1": 100,
        "power_module_energy:accel1": 1000,
    }
    assert read(source) == {}  # the meter has nothing new
    meter(tmp_path, 8, 20.0, cap=900)
    again = read(source)
    assert (again["power_node_energy"], again["power_node_limit"]) == (16000, 900)
    for column in source.columns[1:]:
        metric = metric_of(column.metric)
        assert metric is not None
        assert (metric.unit, metric.stamp == "interval") == (column.unit, column.form == "counter")


def test_values_of_two_refreshes_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter(tmp_path, 1, 1.0)
    source = PmCountersSource(str(tmp_path))
    source.probe()
    real, reads = os.pread, []

    def refreshed_meanwhile(handle: int, size: int, offset: int) -> bytes:
        reads.append(handle)
        if len(reads) == 3:  # behind `freshness` and the node's power
            meter(tmp_path, 2, 100.0)
        return real(handle, size, offset)

    monkeypatch.setattr(pm_counters.os, "pread", refreshed_meanwhile)
    found = read(source)
    assert (found["power_node_energy"], found["power_module_energy:accel1"]) == (80000, 10000)

    def refreshed_always(handle: int, size: int, offset: int) -> bytes:
        reads.append(handle)
        meter(tmp_path, len(reads), 200.0)
        return real(handle, size, offset)

    monkeypatch.setattr(pm_counters.os, "pread", refreshed_always)
    with pytest.raises(ValueError, match="during every try"):
        read(source)


def test_what_is_missing_has_a_reason(tmp_path: Path) -> None:
    absent = PmCountersSource(str(tmp_path)).probe()
    assert {one.metric for one in absent} == set(HOST_METRICS)
    assert "only HPE Cray EX" in absent[0].why
    meter(tmp_path, 1, 1.0)
    (tmp_path / "cray/pm_counters/memory_energy").write_text("not available\n")
    partly = PmCountersSource(str(tmp_path)).probe()
    assert [one.metric for one in partly] == ["power_node_limit", "power_memory_energy"]
    (tmp_path / "cray/pm_counters/freshness").unlink()
    assert "belong together" in PmCountersSource(str(tmp_path)).probe()[0].why


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"245 W 1697040960123456 us\n", (245, 1697040960123456)),
        (b"5264034 J\n", (5264034, 0)),
        (b"17\n", (17, 0)),
        (b"", None),
        (b"N/A W\n", None),
    ],
)
def test_texts_of_the_meter(text: bytes, found: tuple[int, int] | None) -> None:
    assert parsed(text) == found


@pytest.mark.parametrize("first_us", [0, 7_810_213_855_886])  # since 1970, since the controller
def test_energy_of_modules_from_the_rows_to_the_figures(
    tmp_path: Path, first_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """45 refreshes of a tenth of a second each, stamped by the meter in the last seconds: read as
    the sampler reads them.
    """
    begin = first_us or time.time_ns() // 1000 - 6_000_000
    clock = [60_000_000_000]
    monkeypatch.setattr(pm_counters.time, "clock_gettime_ns", lambda _: clock[0])
    meter(tmp_path, 0, 0.0, at_us=begin)
    source = PmCountersSource(str(tmp_path))
    source.probe()
    layout = Layout((source,))
    file = AppendFile(str(tmp_path / "samples"))
    file.append(encode_header(layout, {"host": "h", "hz": 10.0}))
    rows = Rows(layout, TENTH, file)
    for number in range(45):
        meter(tmp_path, number, number / 10, at_us=begin + number * 100_000)
        clock[0] += TENTH + (number % 7) * 1_000_000 * (-1) ** number  # reads come early and late
        rows.record(number * TENTH, 0)
    file.close()
    trace = telemetry.read(tmp_path / "samples")
    every = streams(trace)
    found = packages(every)
    assert [(package.identity, package.scope) for package in found] == [
        ("accel0", MODULE),
        ("accel1", MODULE),
    ]
    at = trace.samples.at_ns[
        trace.samples.metric == trace.strings.find("power_module_energy:accel0")
    ]
    assert np.diff(at) == pytest.approx(np.full(43, TENTH), abs=3_000_000)  # the meter's own times
    figures = power_figures(every, found, window(int(at[0]), int(at[-1])), None, "test")
    assert figures["power_w"].value == pytest.approx(400, rel=0.001)
    assert "accelerator modules" in figures["power_w"].note
    node = trace.samples.value[trace.samples.metric == trace.strings.find("power_node_energy")]
    assert float(np.mean(node)) == pytest.approx(800, rel=0.001)


def test_stamps_are_placed_by_the_quickest_read_of_the_last_minutes() -> None:
    """Reads are 5 to 95 ms late; the meter's clock loses 50 us a second (50 ppm)
    against the node's.
    """
    fit = StampFit()
    late = [5 + (37 * number) % 91 for number in range(3000)]
    errors = []
    for number, delay_ms in enumerate(late):
        true = 10**12 + number * TENTH
        stamp_us = 7_000_000 + number * 99_995
        errors.append(fit.at(stamp_us, true + delay_ms * 1_000_000) - true)
    settled = np.array(errors[100:]) / 1e6
    # the least delay stays in it, less what the clock lost in the two minutes that count
    assert 5 - 6.1 <= settled.min() <= settled.max() <= 5.1
    assert np.ptp(np.diff(settled)) < 4


def test_a_clock_that_was_set_begins_a_new_fit() -> None:
    fit = StampFit()
    assert fit.at(1_000_000, 5 * 10**9) == 5 * 10**9
    assert fit.at(2_000_000, 6 * 10**9 + 300) == 6 * 10**9
    assert fit.at(1_000_000, 30 * 10**9) == 30 * 10**9
    assert fit.at(0, 31 * 10**9) == 31 * 10**9, "a meter without stamps"
