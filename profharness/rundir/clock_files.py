"""The clock readings that the samplers wrote beside their samples (`<host>.clocks.jsonl`), as the
manifest keeps them.
"""

from __future__ import annotations

from profharness.rundir import telemetry
from profharness.rundir.manifest import ClockSnapshot
from profharness.rundir.paths import RunDir
from profharness.trace.clocks.align import Snapshot


def read_clock_files(run: RunDir) -> tuple[ClockSnapshot, ...]:
    """Every clock reading of every host, all in ns; in order of host, then time. Raises InputError
    for a damaged file.
    """
    paths = sorted(run.telemetry.glob("*.clocks.jsonl"))
    return tuple(
        clock_snapshot(reading) for path in paths for reading in telemetry.read_clocks(path)
    )


def clock_snapshot(reading: Snapshot) -> ClockSnapshot:
    """The manifest's form of one reading."""
    return ClockSnapshot(
        host=reading.host,
        phase=reading.phase,
        boot_ns=reading.boot_ns,
        monotonic_ns=reading.monotonic_ns,
        monotonic_raw_ns=reading.monotonic_raw_ns,
        realtime_ns=reading.realtime_ns,
        width_ns=reading.width_ns,
    )
