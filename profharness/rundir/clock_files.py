"""The clock readings that the samplers wrote beside their samples (`<host>.clocks.jsonl`), and as
the manifest keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.limits import LINES_BYTES
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.manifest import ClockSnapshot
from profharness.rundir.paths import RunDir
from profharness.trace.clocks.align import Snapshot
from profharness.trace.clocks.checks import STEP_NS, SUSPENDED_NS

LINK_FILE = ".link.clocks.jsonl"
"""Ends the name of a file of readings that a node took together with those of rank 0's node."""
MOST_READINGS = 400_000
"""Of all hosts together: 95 MB in a manifest. 100 nodes have as many after 67 minutes."""


def read_clocks(path: Path) -> tuple[Snapshot, ...]:
    """The clock readings of one host (`<host>.clocks.jsonl`), in order; a last line that was cut
    off is left out.

    Raises InputError when the file is missing or another line is damaged.
    """
    try:
        lines = read_file(path, LINES_BYTES, text=True).split(b"\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}",
            "without clock readings nothing can be aligned",
        ) from error
    decoder = msgspec.json.Decoder(ClockSnapshot)
    try:
        found = [decoder.decode(line) for line in lines[:-1] if line]
        for line in found:
            check_numbers(line, str(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: a clock reading is damaged ({error})",
            "the file was altered after it was written",
        ) from error
    return tuple(Snapshot(**msgspec.structs.asdict(line)) for line in found)


def read_clock_files(run: RunDir) -> tuple[ClockSnapshot, ...]:
    """The clock readings of every host, all in ns; in order of host, then time, and thinned where
    they are very many. Raises InputError for a damaged file.
    """
    paths = sorted(run.telemetry.glob("*.clocks.jsonl"))
    files = [read_clocks(path) for path in paths]
    every = max(math.ceil(sum(map(len, files)) / MOST_READINGS), 1)
    return tuple(
        clock_snapshot(reading) for readings in files for reading in thinned(readings, every)
    )


def thinned(readings: Sequence[Snapshot], every: int) -> Iterator[Snapshot]:
    """One of so many readings of a host, with those before and after the run, and with both sides
    of each moment at which the clock was set or the host slept.
    """
    moved = [_moved(*pair) for pair in pairwise(readings)]
    for at, reading in enumerate(readings):
        if at % every == 0 or reading.phase != "during" or any(moved[max(at - 1, 0) : at + 1]):
            yield reading


def _moved(before: Snapshot, after: Snapshot) -> bool:
    passed = after.boot_ns - before.boot_ns
    return (
        abs(after.realtime_ns - before.realtime_ns - passed) > STEP_NS
        or abs(after.monotonic_ns - before.monotonic_ns - passed) > SUSPENDED_NS
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
        reference=reading.reference,
        reference_ns=reading.reference_ns,
        reference_width_ns=reading.reference_width_ns,
    )
