"""ResourceLog.csv of one node and of several, and the marks beside it: the lines that figures of
resources are cut by.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.writers import resource_log
from profharness.writers.resource_log import HEADER, Machine, write, write_joint, write_marks
from tests.stats.several_nodes import cluster


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_marks_are_lines_in_order_of_time_on_the_local_clock(tmp_path: Path) -> None:
    machine = Machine(
        cpus=2, memory_bytes=1, monotonic_to_realtime_ns=1_763_631_067_000_000_000
    )  # 2025-11-20 09:31:07 UTC
    path = write_marks([(5_312_345_999, 8), (1_000, 4)], tmp_path, machine)
    assert path == tmp_path / "ResourceLog.marks.txt"
    assert path.read_text() == (
        "Starting batch size 4 at time: 2025-11-20 04:31:07.000001\n"
        "Starting batch size 8 at time: 2025-11-20 04:31:12.312345\n"
    )


MACHINE = Machine(cpus=4, memory_bytes=1 << 30, monotonic_to_realtime_ns=1_763_631_067_000_000_000)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines(), skipinitialspace=True))


@pytest.mark.usefixtures("new_york")
def test_several_nodes_stand_in_one_log_with_host_and_device_in_front(tmp_path: Path) -> None:
    one, other = cluster({"n1": [300.0, 310.0]}), cluster({"n2": []})
    log, about = write_joint([(one, MACHINE), (other, MACHINE)], tmp_path, 100_000_000)
    assert log.read_text().splitlines()[0] == f"Host, Device, {HEADER}"
    rows = rows_of(log)
    stamps = [row["Timestamp"] for row in rows]
    assert stamps == sorted(stamps)
    assert [(row["Host"], row["Device"]) for row in rows[:4]] == [
        ("n1", "0"),
        ("n1", "1"),
        ("n2", ""),
        ("n1", "0"),
    ]
    assert {row["GPU Util (%)"] for row in rows if row["Host"] == "n1"} == {"90.00"}
    assert {row["GPU Util (%)"] for row in rows if row["Host"] == "n2"} == {""}
    assert "n1 1: MI300X, 0000:c6:00.0" in about.read_text()


@pytest.mark.usefixtures("new_york")
def test_the_joint_log_says_of_a_device_what_its_own_log_does(tmp_path: Path) -> None:
    trace = cluster({"n1": [300.0]})
    (tmp_path / "own").mkdir()
    own, _ = write(trace, tmp_path / "own", MACHINE, 0, 100_000_000)
    joint, _ = write_joint([(trace, MACHINE)], tmp_path, 100_000_000)
    cut = [line.split(", ", 2)[2] for line in joint.read_text().splitlines()]
    assert cut == own.read_text().splitlines()


@pytest.mark.usefixtures("new_york")
def test_a_long_job_of_many_devices_has_fewer_rows_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_log, "MOST_ROWS", 40)
    log, about = write_joint(
        [(cluster({"n1": [1.0]}), MACHINE), (cluster({"n2": [1.0]}), MACHINE)],
        tmp_path,
        100_000_000,
    )
    rows = rows_of(log)
    assert 20 <= len(rows) <= 42
    assert "a row every 0.4 s" in about.read_text() or "a row every 0.5 s" in about.read_text()
    assert len({row["Timestamp"] for row in rows}) * 2 == len(rows)


def test_a_node_of_unknown_size_has_empty_cells(tmp_path: Path) -> None:
    log, _ = write_joint([(cluster({"n1": [1.0]}), Machine(0, 0, 0))], tmp_path, 1_000_000_000)
    assert {(row["CPU Util (%)"], row["RAM Util (%)"]) for row in rows_of(log)} == {("", "")}
