"""The marks beside ResourceLog.csv: the lines that figures of resources are cut by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.writers.resource_log import Machine, write_marks


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
