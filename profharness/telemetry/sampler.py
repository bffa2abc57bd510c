"""The sampling loop: absolute deadlines, a row per tick, clock readings and a flush per second.

A tick that comes too late is skipped and counted, never made up for. Each source's read is stamped before and after.
The loop ends on SIGTERM or SIGHUP, and when the harness is gone; the last row, clock reading and flush come before that.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from profharness import __version__
from profharness.telemetry import process
from profharness.telemetry.clocks import read_clocks
from profharness.telemetry.files import AppendFile, ClockFile, path_of, write_json
from profharness.telemetry.records import Layout, Slot, encode_header
from profharness.telemetry.sources import Missing, Target, open_families
from profharness.telemetry.spec import Spec, parse_spec

SECOND_NS = 1_000_000_000
MAX_FAILURES = 10  # failed reads in a row after which a source is left alone


class Failures:
    """Failed reads of one source."""

    __slots__ = ("in_a_row", "last", "total")

    def __init__(self) -> None:
        self.in_a_row = self.total = 0
        self.last = ""

    def add(self, error: Exception) -> None:
        self.in_a_row += 1
        self.total += 1
        self.last = f"{type(error).__name__}: {error}"


class Rows:
    """Makes one row per tick from the sources that are due, and appends it to the file."""

    def __init__(self, layout: Layout, period_ns: int, file: AppendFile) -> None:
        self.count = self.missed = 0
        self.failures = {slot.source.name: Failures() for slot in layout.slots}
        self._layout = layout
        self._file = file
        self._row = list(layout.blank)
        self._due = [0] * len(layout.slots)
        self._interval = [max(period_ns, int(SECOND_NS / slot.source.max_hz)) for slot in layout.slots]
        # A source whose interval ends within this tick is read now, not one tick late. It is not read at the very end
        # if its last read is nearer than that: a rate over a few microseconds would be noise.
        self._early = period_ns // 2

    def record(self, deadline_ns: int, missed: int) -> None:
        row = self._row
        row[:] = self._layout.blank
        row[0] = deadline_ns
        row[1] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        row[2] = missed
        for place, slot in enumerate(self._layout.slots):
            if deadline_ns + self._early >= self._due[place]:
                self._due[place] = deadline_ns + self._interval[place]
                self._read(slot)
        self.count += 1
        self.missed += missed
        self._file.append(self._layout.row.pack(*row))

    def _read(self, slot: Slot) -> None:
        failures = self.failures[slot.source.name]
        if failures.in_a_row >= MAX_FAILURES:
            return
        row, first = self._row, slot.first
        try:
            row[first] = time.monotonic_ns()
            slot.source.read(row, first + 2)
            row[first + 1] = time.monotonic_ns()
            failures.in_a_row = 0
        except Exception as error:  # noqa: BLE001 - a source may call a vendor's library; one that fails must not end the others
            failures.add(error)
            end = first + 2 + len(slot.source.columns)
            row[first:end] = self._layout.blank[first:end]


class Session(NamedTuple):
    """Open files of a running sampler; `rows` is None when only clocks are read."""

    spec: Spec
    clocks: ClockFile
    samples: AppendFile | None
    rows: Rows | None
    parent: process.Parent


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 after a regular end, 1 when a file could not be written, 2 for a wrong call."""
    if len(arguments) != 2 or arguments[0] != "--spec":
        return _say("usage: python -m profharness.telemetry --spec FILE", 2)
    try:
        with open(arguments[1], encoding="utf-8") as file:  # noqa: PTH123 - pathlib would double the start-up time
            spec = parse_spec(file.read())
    except (OSError, ValueError) as error:
        return _say(f"telemetry: {arguments[1]}: {error}", 2)
    try:
        run(spec)
    except OSError as error:
        return _say(f"telemetry: {error}", 1)
    return 0


def _say(text: str, status: int) -> int:
    sys.stderr.write(text + "\n")
    return status


def run(spec: Spec) -> None:
    """Sample until told to end. Raises OSError when a file cannot be made or written."""
    process.prepare()
    parent = process.Parent(spec.parent_pid)
    os.makedirs(spec.output_dir, exist_ok=True)  # noqa: PTH103 - pathlib would double the start-up time
    session = _open(spec, parent)
    reason = _loop(session)
    session.clocks.record("after", read_clocks())
    if session.samples is not None:
        session.samples.close()
    session.clocks.close()
    write_json(path_of(spec.output_dir, spec.host, "done.json"), _summary(session, reason))


def _open(spec: Spec, parent: process.Parent) -> Session:
    """Make the files, probe the sources, and say in the ready file what there is."""
    clocks = ClockFile(path_of(spec.output_dir, spec.host, "clocks.jsonl"), spec.host)
    sources, missing = open_families(spec.sources, Target(spec.parent_pid, spec.roots_file, spec.hz, spec.sysfs))
    period_ns = round(SECOND_NS / spec.hz)
    samples = rows = None
    if sources:
        layout = Layout(sources)
        samples = AppendFile(path_of(spec.output_dir, spec.host, "samples.bin"))
        samples.append(encode_header(layout, _facts(spec, period_ns, missing)))
        samples.flush()
        rows = Rows(layout, period_ns, samples)
    clocks.record("before", read_clocks())
    write_json(path_of(spec.output_dir, spec.host, "ready.json"), {
        "v": 1, "pid": os.getpid(), "host": spec.host, "hz": spec.hz,
        "sources": [{"name": source.name, "metrics": [column.metric for column in source.columns],
                     "hz": min(spec.hz, source.max_hz)} for source in sources],
        "missing": [absent._asdict() for absent in missing]})
    return Session(spec, clocks, samples, rows, parent)


def _facts(spec: Spec, period_ns: int, missing: Sequence[Missing]) -> dict[str, Any]:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123 - see above
            boot_id = file.read().strip()
    except OSError:
        boot_id = ""
    return {"profharness": __version__, "host": spec.host, "pid": os.getpid(), "boot_id": boot_id, "hz": spec.hz,
            "period_ns": period_ns, "clock": "monotonic", "missing": [absent._asdict() for absent in missing]}


def _loop(session: Session) -> str:
    """Returns why it ended: `terminated` or `parent gone`."""
    period_ns = round(SECOND_NS / session.spec.hz)
    start_ns = time.monotonic_ns()
    tick = missed = 0
    housekeeping_ns = start_ns + SECOND_NS
    while True:
        tick_ns = start_ns + tick * period_ns if session.rows else housekeeping_ns
        signo = process.wait_until(min(tick_ns, housekeeping_ns))
        now_ns = time.monotonic_ns()
        reason = _end_reason(session, signo) if signo or now_ns >= housekeeping_ns else ""
        if session.rows and (now_ns >= tick_ns or reason):
            session.rows.record(min(tick_ns, now_ns), missed)
            following = max(tick + 1, -(-(time.monotonic_ns() - start_ns) // period_ns))
            missed, tick = following - tick - 1, following
        if reason:
            return reason
        if now_ns >= housekeeping_ns:
            _keep_house(session)
            housekeeping_ns += SECOND_NS * (1 + (now_ns - housekeeping_ns) // SECOND_NS)


def _end_reason(session: Session, signo: int) -> str:
    if signo in process.STOP_SIGNALS:
        return "terminated"
    return "parent gone" if session.parent.is_gone() else ""


def _keep_house(session: Session) -> None:
    session.clocks.record("during", read_clocks())
    if session.samples is not None:
        session.samples.flush()


def _summary(session: Session, reason: str) -> dict[str, Any]:
    rows = session.rows
    failures = rows.failures.items() if rows else ()
    return {"v": 1, "reason": reason, "rows": rows.count if rows else 0, "missed": rows.missed if rows else 0,
            "cpu_ns": time.process_time_ns(),
            "failed": [{"source": name, "count": count.total, "last": count.last} for name, count in failures if count.total]}
