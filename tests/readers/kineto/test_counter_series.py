"""Series of device counters that Kineto and newer torch write beside the kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.summarise import summarise_trace
from profharness.cli import run_cli
from profharness.readers.kineto import reader
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write

BASE = 1_700_000_000_000_000_000
OF_PEAK = "avg.pct_of_peak_sustained_elapsed"


def value(name: str, ts: float, number: Any, *, pid: Any = "GPU 0 Counters", **keys: Any) -> Any:
    return {"ph": "C", "name": name, "pid": pid, "ts": ts, "args": {"": number}, **keys}


WORK = [
    op("mm", 0, 8, 1),
    launch("cudaLaunchKernel", 1, 1, 5),
    kernel("gemm", 10, 20, correlation=5),
    op("relu", 8, 8, 2),
    launch("cudaLaunchKernel", 9, 1, 6),
    kernel("relu_kernel", 30, 10, correlation=6),
]


def trace_of(tmp_path: Path, *events: Any, wanted: Wanted = Wanted.ALL) -> Trace:
    path = write(tmp_path / "t.json", document([*WORK, *events], baseTimeNanoseconds=BASE))
    return readers.read(path, wanted=wanted)


def rows(trace: Trace) -> list[tuple[int, str, float, str]]:
    samples = trace.samples
    assert samples.until_ns.tolist() == samples.at_ns.tolist()
    return [
        (int(at) - BASE, trace.strings[code], round(number, 9), trace.devices[place].index)
        for at, code, number, place in zip(
            samples.at_ns, samples.metric, samples.value, samples.device, strict=True
        )
    ]


def test_series_of_both_writers_are_telemetry_of_their_device(tmp_path: Path) -> None:
    pm = {"cat": "hardware_counters", "tid": 0}
    trace = trace_of(
        tmp_path,
        value("SM Active (%)", 10.5, 40.0),
        value(f"dram__throughput.{OF_PEAK}", 11, 25, **pm),
        value("Power (W)", 12, 312.5, pid="GPU 1 Counters"),
        value("SM Clock (MHz)", 12, 1755),
        value("NVLink RX (GB/s)", 13, 7.5),
        value(f"lts__t_sectors.{OF_PEAK}", 13, 3, **pm),
        value("events", 13, 3),
    )
    assert sorted(rows(trace)) == [
        (10_500, "sm_activity", 0.4, "0"),
        (11_000, "dram_activity", 0.25, "0"),
        (12_000, "clock_gpu", 1755.0, "0"),
        (12_000, "power_w", 312.5, "1"),
        (13_000, "NVLink RX (GB/s)", 7.5, "0"),
        (13_000, "events", 3.0, "0"),
        (13_000, f"lts__t_sectors.{OF_PEAK}", 3.0, "0"),
    ]
    assert trace.sources[0].units == (
        ("NVLink RX (GB/s)", "GB/s"),
        (f"lts__t_sectors.{OF_PEAK}", "%"),
    )
    assert not trace.problems[1:]


def test_values_that_cannot_be_and_what_is_no_series_are_left_out_and_counted(
    tmp_path: Path,
) -> None:
    odd = [
        value("Power (W)", 1, "much"),
        value("Power (W)", 1, float("nan")),
        value("Power (W)", 1, -3.0),
        value("SM Active (%)", 1, 5000.0),
        value(f"lts__t_sectors.{OF_PEAK}", 1, 102.0, cat="hardware_counters"),
        value("SM Active (%)", 1, -0.5),
        {**value("Power (W)", 1, 3), "args": {"a": 1, "b": 2}},
        {**value("Power (W)", 1, 3), "args": {}},
        {**value("Power (W)", 1, 3), "ts": None},
        value("CPU load", 1, 3, pid=7),
        value("sm", 1, 3, pid="GPU Counters", cat="hardware_counters"),
    ]
    trace = trace_of(
        tmp_path, *odd, value("Power (W)", 2, 300), value("SM Active (%)", 2, 100.4, cat=None)
    )
    assert [row[1:3] for row in rows(trace)] == [("power_w", 300.0), ("sm_activity", 1.0)]
    assert [(problem.count, problem.message) for problem in trace.problems[1:]] == [
        (9, "samples of device counters have no time or an impossible value: left out"),
        (2, "kernels have no launch geometry: the file does not state it"),
        (2, "events of kinds that are not analysed were left out: hardware_counters 1, ph=C 1"),
    ]


@pytest.mark.parametrize("wanted", [Wanted.TIMES, Wanted.DEVICES])
def test_readings_of_devices_alone_keep_no_series(tmp_path: Path, wanted: Wanted) -> None:
    trace = trace_of(tmp_path, value("Power (W)", 2, 300, pid="GPU 4 Counters"), wanted=wanted)
    assert not len(trace.samples)
    assert [device.index for device in trace.devices] == ["0"]


def test_any_block_size_gives_the_same(tmp_path: Path) -> None:
    events = [value("Power (W)", 2 * n, 300 + n) for n in range(40)]
    whole = trace_of(tmp_path, *events)
    blocks = reader.read_blocks(tmp_path / "t.json", block_bytes=300)
    assert rows(blocks) == rows(whole)
    assert len(whole.samples) == 40


def test_they_join_kernels_operators_and_figures_as_our_own_telemetry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        one
        for at in range(0, 50, 5)
        for one in (
            value("Power (W)", at, 300 if at < 30 else 200),
            value("SM Active (%)", at, 50 if at < 30 else 10),
        )
    ]
    trace = trace_of(tmp_path, *events)
    for by, names in (("kernel", ("gemm", "relu_kernel")), ("op", ("mm", "relu"))):
        line = ["hotspots", str(tmp_path / "t.json"), "--by", by, "--json"]
        assert run_cli([*line, "--samples", "power,sm_activity"]) == 0
        table = json.loads(capsys.readouterr().out)["rows"]
        means = {
            row["name"]: [row["samples"][metric]["value"] for metric in ("power_w", "sm_activity")]
            for row in table
        }
        assert means == {names[0]: [300, 0.5], names[1]: [200, pytest.approx(0.1)]}
    summary = summarise_trace(trace, "t")
    assert [(row.metric, row.device, row.samples) for row in summary.telemetry] == [
        ("sm_activity", "0", 10),
        ("power_w", "0", 10),
    ]
    window = np.array([300] * 4 + [200] * 2)  # samples at 10, 15, ... 35 of a window of 10 to 40
    power = summary.metrics["power_w"]
    assert [power.value, power.source] == [
        pytest.approx(window.mean()),
        "kineto: all device work",
    ]
