"""The clock readings that a manifest keeps: all, unless they are so many that nobody could read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from profharness.rundir import clock_files
from profharness.rundir.clock_files import MOST_READINGS, clock_snapshot, read_clock_files, thinned
from profharness.rundir.foreign.limits import MANIFEST_BYTES, RECORDS
from profharness.rundir.paths import RunDir
from profharness.telemetry.clocks import ClockReading, clock_line
from profharness.trace.clocks.align import Snapshot

SECOND = 1_000_000_000


def reading(at: int, *, phase: str = "during", set_by_ns: int = 0, slept_ns: int = 0) -> Snapshot:
    boot = 10**15 + at * SECOND
    return Snapshot(
        "node1234", phase, boot, boot - slept_ns, boot - slept_ns, boot + 10**18 + set_by_ns, 300
    )


def kept(readings: Sequence[Snapshot], every: int) -> list[int]:
    return [(one.boot_ns - 10**15) // SECOND for one in thinned(readings, every)]


def test_every_reading_is_kept_where_they_are_few() -> None:
    readings = [reading(at) for at in range(10)]
    assert list(thinned(readings, 1)) == readings


def test_the_ends_of_the_run_and_both_sides_of_a_step_or_sleep_are_kept() -> None:
    steady = [reading(0, phase="before"), *map(reading, range(1, 100)), reading(100, phase="after")]
    assert kept(steady, 40) == [0, 40, 80, 100]
    was_set = [reading(at, set_by_ns=SECOND * (at > 10)) for at in range(100)]
    assert kept(was_set, 40) == [0, 10, 11, 40, 80]
    slept = [reading(at, slept_ns=SECOND * (at > 50)) for at in range(100)]
    assert kept(slept, 40) == [0, 40, 50, 51, 80]


def test_many_readings_are_thinned_evenly_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "telemetry").mkdir()
    for host in ("a", "b"):
        lines = (
            clock_line(host, "during", ClockReading(at, at, at, at, 300))
            for at in range(1_000, 1_300)
        )
        (tmp_path / "telemetry" / f"{host}.clocks.jsonl").write_bytes(b"".join(lines))
    run = RunDir(tmp_path)
    assert len(read_clock_files(run)) == 600
    monkeypatch.setattr(clock_files, "MOST_READINGS", 250)
    assert [(one.host, one.boot_ns) for one in read_clock_files(run)] == [
        (host, at) for host in "ab" for at in range(1_000, 1_300, 3)
    ]


def test_a_manifest_that_holds_as_many_is_not_refused() -> None:
    one = msgspec.json.encode(clock_snapshot(reading(10**6)))
    assert RECORDS["clocks"] >= MOST_READINGS
    assert (len(one) + 1) * MOST_READINGS < MANIFEST_BYTES / 2
