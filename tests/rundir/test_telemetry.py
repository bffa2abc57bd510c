"""The sampler's files, written here field by field as the format says, and their Parquet form."""

from __future__ import annotations

import gzip
import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.errors import InputError
from profharness.rundir import clock_files, telemetry
from profharness.rundir.telemetry_rows import read_header
from profharness.telemetry.clocks import ClockReading, clock_line
from profharness.telemetry.records import MAGIC, Layout, encode_header
from profharness.telemetry.sources import Column, Missing, SampledDevice
from profharness.trace.clocks.align import Snapshot
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Device, Trace
from profharness.writers import telemetry_parquet

START = 5_000_000_000
BOOT = 7_000_000_000  # CLOCK_BOOTTIME less CLOCK_MONOTONIC


class Host:
    name = "host"
    max_hz = 10.0
    devices: tuple[SampledDevice, ...] = ()
    columns = (Column("cpu_tree", "cores", "counter", 1e-9), Column("memory_tree", "B", "instant"))

    def probe(self) -> tuple[Missing, ...]:
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        raise NotImplementedError


class Gpus(Host):
    name = "gpus"
    devices = (
        SampledDevice("0", "0000:c1:00.0", "MI300X", "amd"),
        SampledDevice("1", "0000:c6:00.0", "MI300X", "amd"),
    )
    columns = (
        Column("power", "W", "instant", 1.0, "d", 0),
        Column("stamp", "ns", "instant", device=1, role="stamp"),
        Column("power", "W", "instant", 1.0, "d", 1),
        Column("energy", "W", "counter", 15.2588e-6, "q", 1),
    )


def _file(
    path: Path,
    rows: list[tuple[float, ...]],
    *,
    missing: tuple[Missing, ...] = (),
    rest: bytes = b"",
) -> Path:
    layout = Layout((Host(), Gpus()))
    facts = {
        "host": "n1",
        "pid": 42,
        "hz": 10.0,
        "period_ns": 100_000_000,
        "clock": "monotonic",
        "profharness": "9.9",
        "missing": [absent._asdict() for absent in missing],
    }
    path.write_bytes(
        encode_header(layout, facts) + b"".join(layout.row.pack(*row) for row in rows) + rest
    )
    return path


def _row(
    tick: int,
    cpu: int = -1,
    memory: int = -1,
    gpu: tuple[float, int, float, int] = (math.nan, -1, math.nan, -1),
    missed: int = 0,
) -> tuple[float, ...]:
    """A row due at START + tick x 100 ms: host read 1000 to 3000 ns later, GPUs 4000 to 8000 ns
    later; -1 is not read.
    """
    at = START + tick * 100_000_000
    return (
        at,
        at + 1000 + BOOT,
        missed,
        at + 1000,
        at + 3000,
        cpu,
        memory,
        at + 4000,
        at + 8000,
        *gpu,
    )


def _series(trace: Trace, metric: str, device: int = NULL) -> list[tuple[int, int, float]]:
    s = trace.samples
    rows = (s.metric == trace.strings.find(metric)) & (s.device == device)
    return list(
        zip(
            (s.at_ns[rows] - START).tolist(),
            (s.until_ns[rows] - START).tolist(),
            s.value[rows].tolist(),
            strict=True,
        )
    )


def test_counters_become_rates_of_the_interval_and_instants_stay(tmp_path: Path) -> None:
    path = _file(
        tmp_path / "n1.samples.bin",
        [
            _row(0, 100, 10, (300.5, START + BOOT + 50, 200.0, 1_000)),
            _row(1, 200_000_100),
            _row(2, -1, 30, (math.nan, START + BOOT + 100_000_050, 210.0, 1_001_000)),
            _row(4, 200_000_100, 40, missed=1),
        ],
    )
    trace = telemetry.read(path)
    assert _series(trace, "cpu_tree") == [(2000, 100_002_000, 2.0), (100_002_000, 400_002_000, 0.0)]
    assert _series(trace, "memory_tree") == [
        (2000, 2000, 10.0),
        (200_002_000, 200_002_000, 30.0),
        (400_002_000, 400_002_000, 40.0),
    ]
    assert _series(trace, "power", 0) == [(6000, 6000, 300.5)]
    # device 1 says itself when it was read
    assert _series(trace, "power", 1) == [(50, 50, 200.0), (100_000_050, 100_000_050, 210.0)]
    assert _series(trace, "energy", 1) == [(50, 100_000_050, pytest.approx(152.588))]
    assert trace.devices == (
        Device("0", "n1", "0000:c1:00.0", "MI300X", "amd"),
        Device("1", "n1", "0000:c6:00.0", "MI300X", "amd"),
    )
    (source,) = trace.sources
    assert (source.clock, source.host, source.pid, source.tool_version) == (
        ClockDomain.MONOTONIC,
        "n1",
        42,
        "9.9",
    )
    assert dict(source.details)["late_p50_ns"] == "1000"
    assert [(p.severity, p.count) for p in trace.problems] == [("warning", 1)]


def test_a_file_without_a_row_yet_has_no_samples(tmp_path: Path) -> None:
    """As a live view finds it before the sampler wrote its first second, with a device that says
    itself when it was read.
    """
    path = _file(tmp_path / "n1.samples.bin", [])
    assert len(telemetry.read(path).samples) == len(telemetry.read_tail(path, 10).samples) == 0


def test_metrics_that_are_read_less_often_say_their_own_rate(tmp_path: Path) -> None:
    layout = Layout((Host(), Gpus()))
    path = tmp_path / "n1.samples.bin"
    path.write_bytes(
        encode_header(layout, {"host": "n1", "hz": 100.0, "rates": {"host": 2.0, "gpus": 100.0}})
        + layout.row.pack(*_row(0, 100))
    )
    details = dict(telemetry.read(path).sources[0].details)
    assert (details["hz"], details["hz.cpu_tree"], details["hz.memory_tree"]) == ("100", "2", "2")
    assert not details.keys() & {"hz.power", "hz.energy", "hz."}


def test_a_file_of_the_first_version_reads_the_same(tmp_path: Path) -> None:
    """It had 8-byte fields only, in the order of its columns, and said no places."""
    rows = [
        _row(0, 100, 10, (300.5, START + BOOT + 50, 200.0, 1_000)),
        _row(1, 200_000_100, 20, (301.0, START + BOOT + 100_000_050, 210.0, 1_001_000)),
    ]
    new = _file(tmp_path / "new", rows)
    header, start = read_header(new.read_bytes(), new)
    described = json.loads(new.read_bytes()[16:start])
    columns = [
        {name: value for name, value in column.items() if name != "at"}
        for column in described["columns"]
    ]
    text = json.dumps(
        {
            **{name: value for name, value in described.items() if name != "width"},
            "v": 1,
            "columns": columns,
        }
    ).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    old = tmp_path / "old"
    old.write_bytes(MAGIC + struct.pack("<I4x", len(text)) + text + new.read_bytes()[start:])
    assert header.v == 2
    for metric, device in (("cpu_tree", NULL), ("memory_tree", NULL), ("power", 0), ("energy", 1)):
        assert (
            _series(telemetry.read(old), metric, device)
            == _series(telemetry.read(new), metric, device)
            != []
        )


def test_gzipped_files_say_the_same(tmp_path: Path) -> None:
    path = _file(tmp_path / "n1.samples.bin", [_row(0, 100), _row(1, 200_000_100)])
    packed = tmp_path / "n1.samples.bin.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert (
        _series(telemetry.read(packed), "cpu_tree")
        == _series(telemetry.read(path), "cpu_tree")
        == [(2000, 100_002_000, 2.0)]
    )


def test_a_counter_that_falls_gives_no_value(tmp_path: Path) -> None:
    trace = telemetry.read(
        _file(tmp_path / "x", [_row(0, 500_000_000), _row(1, 100), _row(2, 100_000_100)])
    )
    assert _series(trace, "cpu_tree") == [(100_002_000, 200_002_000, 1.0)]
    assert [(p.count, p.message) for p in trace.problems] == [
        (1, "counters went backwards: no value for these intervals")
    ]


def test_rows_that_miss_more_than_can_be_missed_count_none(tmp_path: Path) -> None:
    rows = [_row(0, 5), _row(2, 6, missed=1), _row(3, 7, missed=(1 << 63) - 1), _row(4, missed=-9)]
    trace = telemetry.read(_file(tmp_path / "x", rows))
    assert [p.count for p in trace.problems if "skipped" in p.message] == [1]
    assert dict(trace.sources[0].details)["missed"] == "1"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_that_a_crash_left_as_zeros_are_no_rows(tmp_path: Path, pack) -> None:
    path = _file(tmp_path / "n1.samples.bin", [_row(tick, tick, 7) for tick in range(4)])
    whole = telemetry.read(path)
    width = Layout((Host(), Gpus())).row.size
    data = path.read_bytes()
    inside = data[: -2 * width] + bytes(5 * width) + data[-2 * width :]
    path.write_bytes(pack(inside + bytes(3 * width)))
    read = telemetry.read(path)
    assert _series(read, "memory_tree") == _series(whole, "memory_tree") != []
    (said,) = [problem for problem in read.problems if problem.severity == "warning"]
    assert said.count == 8
    assert "nothing but zeros" in said.message


def test_a_hole_behind_the_rows_is_not_read(tmp_path: Path) -> None:
    path = _file(tmp_path / "n1.samples.bin", [_row(tick, tick, 7) for tick in range(4)])
    whole = telemetry.read(path)
    os.truncate(path, 1 << 40)
    read = telemetry.read(path)
    assert _series(read, "memory_tree") == _series(whole, "memory_tree") != []
    assert "nothing but zeros" in " ".join(problem.message for problem in read.problems)


def test_what_is_missing_or_cut_is_said(tmp_path: Path) -> None:
    trace = telemetry.read(
        _file(
            tmp_path / "x",
            [_row(0, 5)],
            missing=(Missing("pressure_io", "no such file"),),
            rest=b"\1" * 9,
        )
    )
    assert [p.message for p in trace.problems] == [
        "the last row was cut off: the sampler was killed as it wrote",
        "pressure_io was not sampled: no such file",
    ]
    assert dict(trace.sources[0].details)["missing.pressure_io"] == "no such file"
    empty = telemetry.read(_file(tmp_path / "y", []))
    assert len(empty.samples) == 0
    assert "holds no sample" in empty.problems[0].message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no telemetry file"),
        (b"PHTELEM1\xff\xff\0\0\0\0\0\0{}", "cut within its header"),
        (MAGIC + struct.pack("<I4x", 8) + b'{"v":7} ', "version 7 is newer than 2"),
        (MAGIC + struct.pack("<I4x", 8) + b'{"v":1} ', "header is damaged"),
        (MAGIC + struct.pack("<I4x", 8) + b"\xffgarbage", "header is damaged"),
        (b"PAR1 but nothing else", "telemetry table"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        telemetry.read(path)


def test_sniffing() -> None:
    assert telemetry.MAGIC == MAGIC
    assert telemetry.sniff(MAGIC + b"....", "anything")
    assert telemetry.sniff(b"PAR1....", "node.parquet")
    assert not telemetry.sniff(b"PAR1....", "node.bin")
    assert not telemetry.sniff(b'{"traceEvents": []}', "trace.json")


def test_parquet_says_the_same(tmp_path: Path) -> None:
    trace = telemetry.read(
        _file(
            tmp_path / "n1.samples.bin",
            [
                _row(0, 100, 10, (300.5, -1, 200.0, -1)),
                _row(1, 200_000_100),
                _row(3, 300_000_100, missed=1),
            ],
            missing=(Missing("a", "b"),),
        )
    )
    path = tmp_path / "n1.parquet"
    telemetry_parquet.write(trace, path)
    again = telemetry.read(path)
    for metric, device in (("cpu_tree", NULL), ("memory_tree", NULL), ("power", 0), ("power", 1)):
        assert _series(again, metric, device) == _series(trace, metric, device) != []
    assert again.devices == trace.devices
    assert [(p.severity, p.count, p.message) for p in again.problems] == [
        (p.severity, p.count, p.message) for p in trace.problems
    ]
    first, second = trace.sources[0], again.sources[0]
    assert {
        name: getattr(second, name)
        for name in ("clock", "host", "pid", "details", "tool_version", "layer", "format")
    } == {
        name: getattr(first, name)
        for name in ("clock", "host", "pid", "details", "tool_version", "layer", "format")
    }
    assert [p.name for p in tmp_path.glob(".*")] == []


def test_parquet_without_samples_and_of_others(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    telemetry_parquet.write(telemetry.read(_file(tmp_path / "x", [])), tmp_path / "x.parquet")
    assert len(telemetry.read(tmp_path / "x.parquet").samples) == 0
    pq.write_table(pa.table({"a": np.arange(3)}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="telemetry table"):
        telemetry.read(tmp_path / "other.parquet")
    whole = telemetry.read(tmp_path / "x")
    with pytest.raises(ValueError, match="one source is needed, not 2"):
        telemetry_parquet.write(Trace(whole.sources * 2, whole.strings), tmp_path / "two.parquet")


def _clock_file(path: Path, **changes: Any) -> Path:
    lines = [
        clock_line("n1", phase, ClockReading(i, i + 1, i + 2, i + 3, 9))
        for i, phase in enumerate(("before", "during"))
    ]
    path.write_bytes(b"".join(lines) + changes.get("rest", b""))
    return path


def test_clock_readings(tmp_path: Path) -> None:
    expected = (Snapshot("n1", "before", 0, 1, 2, 3, 9), Snapshot("n1", "during", 1, 2, 3, 4, 9))
    assert clock_files.read_clocks(_clock_file(tmp_path / "c")) == expected
    assert (
        clock_files.read_clocks(_clock_file(tmp_path / "c", rest=b'{"v":1,"host":"n1","pha'))
        == expected
    )
    with pytest.raises(InputError, match="a clock reading is damaged"):
        clock_files.read_clocks(_clock_file(tmp_path / "c", rest=b'{"v":1}\n'))
    beyond = clock_line("n1", "during", ClockReading(1 << 70, 1, 1, 1, 9))
    with pytest.raises(InputError, match="boot_ns is 1180591620717411303424, which no run has"):
        clock_files.read_clocks(_clock_file(tmp_path / "c", rest=beyond))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        clock_files.read_clocks(tmp_path / "absent")


def test_json_of_a_clock_line_is_plain(tmp_path: Path) -> None:
    assert json.loads(_clock_file(tmp_path / "c").read_text().splitlines()[0]) == {
        "v": 1,
        "host": "n1",
        "phase": "before",
        "boot_ns": 0,
        "monotonic_ns": 1,
        "monotonic_raw_ns": 2,
        "realtime_ns": 3,
        "width_ns": 9,
    }
