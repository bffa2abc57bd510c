"""The sampling loop: absolute deadlines, a row per tick, clock readings and a flush per second.

A tick that comes too late is skipped and counted, never made up for. Each source's read is stamped
before and after. The loop ends on SIGTERM or SIGHUP, and when the harness is gone; the last row,
clock reading and flush come before that.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from time import CLOCK_BOOTTIME, clock_gettime_ns, monotonic_ns
from typing import Any, NamedTuple

from profharness.telemetry import process
from profharness.telemetry.caps.leaving import Leaving
from profharness.telemetry.clocks import read_clocks
from profharness.telemetry.facts import facts
from profharness.telemetry.files import (
    FLUSH_BYTES,
    AppendFile,
    ClockFile,
    exit_status,
    path_of,
    write_json,
)
from profharness.telemetry.keeper import Keeper
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sources import Source, Target, open_families
from profharness.telemetry.spec import Spec, parse_spec

SECOND_NS = 1_000_000_000
NEVER_NS = 1 << 62
_HEAD = 3  # fields before those of the sources: deadline, boot, missed
CLOCK_BRACKETS = 20  # of the readings once per second; the first and the last take more
MAX_FAILURES = 10  # failed reads in a row after which a source is left alone


class Failures:
    """Failed reads of one source."""

    __slots__ = ("in_a_row", "last", "total")

    def __init__(self) -> None:
        self.in_a_row = self.total = 0
        self.last = ""

    def add(self, error: Exception) -> None:
        """Count a failed read and remember its reason."""
        self.in_a_row += 1
        self.total += 1
        self.last = f"{type(error).__name__}: {error}"


class _Reading(NamedTuple):
    """One source as the loop needs it: where its two stamps and its columns stand in its part of
    the row, and how often it is read.
    """

    read: Callable[[list[Any], int], None]
    first: int
    end: int
    interval_ns: int
    failures: Failures


class _Part:
    """A stretch of the row: its fields as they are when nothing was read, and what packs them."""

    def __init__(self, layout: Layout, first: int, end: int) -> None:
        self.blank = layout.blank[first:end]
        self.row = list(self.blank)
        self.pack = struct.Struct("<" + "".join(layout.types[first:end])).pack


class Rows:
    """Makes one row per tick from the sources that are due, and appends it to the file.

    A sleeping process finds its core's caches cold: what a tick touches is what it costs. So the
    sources that are read at every tick stand first in the row (`order`), and most ticks do not
    touch the slower ones, not even their part of the row, which is ready-made. And one reading of
    the clock is both the end of a read and the begin of the next.
    """

    def __init__(self, layout: Layout, period_ns: int, file: AppendFile) -> None:
        """Raises ValueError for sources in another order."""
        self.count = self.missed = 0
        self.failures = {slot.source.name: Failures() for slot in layout.slots}
        self._file = file
        self._waiting = file.waiting
        self._period = period_ns
        intervals = [interval_ns(slot.source, period_ns) for slot in layout.slots]
        fast = sum(interval == period_ns for interval in intervals)
        if intervals[:fast] != [period_ns] * fast:
            raise ValueError("sources that are read at every tick come first")
        parted = layout.slots[fast - 1].end if fast else _HEAD
        readings = [
            _Reading(
                slot.source.read, slot.first, slot.end, interval, self.failures[slot.source.name]
            )
            for slot, interval in zip(layout.slots, intervals, strict=True)
        ]
        self._fast = tuple(readings[:fast])
        self._slow = tuple(
            reading._replace(first=reading.first - parted, end=reading.end - parted)
            for reading in readings[fast:]
        )
        self._slow_due = [0] * len(self._slow)
        self._fast_next = self._slow_next = 0
        self._front, self._back = _Part(layout, 0, parted), _Part(layout, parted, len(layout.types))
        self._nothing_slow = self._back.pack(*self._back.blank)
        # A source whose interval ends within this tick is read now, not one tick late. It is not
        # read at the very end if its last read is nearer than that: a rate over a few microseconds
        # would be noise.
        self._early = period_ns // 2

    def record(self, deadline_ns: int, missed: int) -> int:
        """Returns CLOCK_MONOTONIC after the last read."""
        front = self._front
        row = front.row
        row[:] = front.blank
        row[0] = deadline_ns
        row[1] = clock_gettime_ns(CLOCK_BOOTTIME)
        row[2] = missed
        now_ns = monotonic_ns()
        reached = deadline_ns + self._early
        if reached >= self._fast_next:
            self._fast_next = deadline_ns + self._period
            for read, first, end, _, failures in self._fast:
                row[first] = now_ns
                try:
                    read(row, first + 2)
                    row[first + 1] = now_ns = monotonic_ns()
                    if failures.in_a_row:
                        failures.in_a_row = 0
                except Exception as error:  # noqa: BLE001  one that fails must not end the others
                    self._failed(failures, error)
                    row[first:end] = front.blank[first:end]
                    now_ns = monotonic_ns()
        slow = self._nothing_slow
        if reached >= self._slow_next:
            slow = self._read_slow(deadline_ns, reached)
            now_ns = monotonic_ns()
        self.count += 1
        self.missed += missed
        waiting = self._waiting
        waiting += front.pack(*row)
        waiting += slow
        if len(waiting) >= FLUSH_BYTES:
            self._file.flush()
        return now_ns

    def _read_slow(self, deadline_ns: int, reached: int) -> bytes:
        """The slow sources' part of the row."""
        due, back = self._slow_due, self._back
        row = back.row
        row[:] = back.blank
        for place, (read, first, end, interval, failures) in enumerate(self._slow):
            if reached < due[place]:
                continue
            due[place] = deadline_ns + interval
            try:
                row[first] = monotonic_ns()
                read(row, first + 2)
                row[first + 1] = monotonic_ns()
                failures.in_a_row = 0
            except Exception as error:  # noqa: BLE001  one that fails must not end the others
                self._failed(failures, error)
                row[first:end] = back.blank[first:end]
                if failures.in_a_row >= MAX_FAILURES:
                    due[place] = NEVER_NS
        self._slow_next = min(due, default=NEVER_NS)
        return back.pack(*row)

    def _failed(self, failures: Failures, error: Exception) -> None:
        """A source that keeps failing is left alone."""
        failures.add(error)
        if failures.in_a_row >= MAX_FAILURES:
            self._fast = tuple(
                reading for reading in self._fast if reading.failures is not failures
            )


def interval_ns(source: Source, period_ns: int) -> int:
    """How often a source is read: at every tick, or less often where its rate asks for that."""
    return max(period_ns, int(SECOND_NS / source.max_hz))


def order(sources: Sequence[Source], period_ns: int) -> tuple[Source, ...]:
    """The sources with those first that are read at every tick."""
    return tuple(sorted(sources, key=lambda source: interval_ns(source, period_ns) != period_ns))


class Session(NamedTuple):
    """Open files of a running sampler; `rows` is None when only clocks are read."""

    spec: Spec
    clocks: ClockFile
    samples: AppendFile | None
    rows: Rows | None
    parent: process.Parent
    timer: process.Timer
    sources: tuple[Source, ...] = ()


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 after a regular end, 2 for a wrong call, 1 when a file could not be written, or
    WRITE_FAILED and the number of the error when the disk took no more.
    """
    if len(arguments) != 2 or arguments[0] != "--spec":
        return _say("usage: python -m profharness.telemetry --spec FILE", 2)
    try:
        # pathlib would double the start-up time
        with open(arguments[1], encoding="utf-8") as file:  # noqa: PTH123  pathlib is slow to load
            spec = parse_spec(file.read())
    except (OSError, ValueError) as error:
        return _say(f"telemetry: {arguments[1]}: {error}", 2)
    try:
        run(spec)
    except OSError as error:
        return _say(f"telemetry: {error}", exit_status(error))
    return 0


def _say(text: str, status: int) -> int:
    sys.stderr.write(text + "\n")
    return status


def run(spec: Spec) -> None:
    """Sample until told to end. Raises OSError when a file cannot be made or written."""
    timer = process.prepare()
    parent = process.Parent(spec.parent_pid)
    leaving = Leaving(spec.caps_file)
    keeper = Keeper(spec.parent_pid, leaving.begin)
    try:
        _sample(spec, parent, timer, leaving)
    finally:
        leaving.finish()
        if parent.is_gone():
            keeper.finish()


def _sample(spec: Spec, parent: process.Parent, timer: process.Timer, leaving: Leaving) -> None:
    os.makedirs(spec.output_dir, exist_ok=True)  # noqa: PTH103  pathlib is slow to load
    session = _open(spec, parent, timer)
    reason = _loop(session)
    timer.close()
    leaving.begin()
    session.clocks.record("after", read_clocks())
    if session.samples is not None:
        session.samples.close()
    session.clocks.close()
    summary = _summary(session, reason)
    for source in session.sources:
        if hasattr(source, "close"):
            source.close()
    write_json(path_of(spec.output_dir, spec.host, "done.json"), summary)


def _details(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """What sources say of themselves (`sources.Held`)."""
    return [fact for source in sources if hasattr(source, "facts") for fact in source.facts()]


def _open(spec: Spec, parent: process.Parent, timer: process.Timer) -> Session:
    """Make the files, probe the sources, and say in the ready file what there is."""
    clocks = ClockFile(path_of(spec.output_dir, spec.host, "clocks.jsonl"), spec.host)
    sources, missing = open_families(
        spec.sources,
        Target(
            spec.parent_pid,
            spec.roots_file,
            spec.hz,
            spec.sysfs,
            spec.counters_hz or 2.0,
            spec.counting_gate,
            spec.exporter,
        ),
    )
    period_ns = period_of(spec.hz)
    samples = rows = None
    if sources:
        layout = Layout(order(sources, period_ns))
        samples = AppendFile(path_of(spec.output_dir, spec.host, "samples.bin"))
        samples.append(
            encode_header(
                layout,
                {
                    **facts(spec, period_ns, missing),
                    "rates": {source.name: min(spec.hz, source.max_hz) for source in sources},
                    "details": _details(sources),
                },
            )
        )
        samples.flush()
        rows = Rows(layout, period_ns, samples)
    clocks.record("before", read_clocks())
    write_json(
        path_of(spec.output_dir, spec.host, "ready.json"),
        {
            "v": 1,
            "pid": os.getpid(),
            "host": spec.host,
            "hz": spec.hz,
            "sources": [
                {
                    "name": source.name,
                    "metrics": [
                        column.metric for column in source.columns if column.role == "value"
                    ],
                    "hz": min(spec.hz, source.max_hz),
                }
                for source in sources
            ],
            "missing": [absent._asdict() for absent in missing],
        },
    )
    return Session(spec, clocks, samples, rows, parent, timer, sources)


def _loop(session: Session) -> str:
    """Returns why it ended: `terminated` or `parent gone`."""
    rows, timer = session.rows, session.timer
    period_ns = period_of(session.spec.hz) if rows else SECOND_NS
    wake_ns = _wake_ns(period_ns)
    house_period_ns = wake_ns * (
        SECOND_NS // wake_ns
    )  # the house is kept when awake, and once per second at the latest
    tick_ns = start_ns = monotonic_ns()
    house_ns = start_ns + house_period_ns
    missed = 0
    timer.start(start_ns, wake_ns)
    while True:
        timer.wait()
        now_ns = monotonic_ns()
        reason = _end_reason(session, tick_ns, wake_ns) if timer.signo or now_ns >= house_ns else ""
        if now_ns >= tick_ns or reason:
            if rows:
                now_ns = rows.record(min(tick_ns, now_ns), missed)
            missed = max((now_ns - tick_ns) // period_ns, 0)  # ticks that it is too late for
            tick_ns += (1 + missed) * period_ns
        if reason:
            return reason
        if now_ns >= house_ns:
            _keep_house(session)
            house_ns += house_period_ns * (1 + (now_ns - house_ns) // house_period_ns)


def period_of(hz: float) -> int:
    """From one tick to the next, in ns: a multiple of the timer's period, to the nanosecond."""
    period_ns = round(SECOND_NS / hz)
    wakes = -(-period_ns // SECOND_NS)
    return wakes * round(period_ns / wakes)


def _wake_ns(period_ns: int) -> int:
    """The timer's period: that of the ticks, or a whole part of it where they are more than a
    second apart.
    """
    return period_ns // -(-period_ns // SECOND_NS)


def _end_reason(session: Session, tick_ns: int, wake_ns: int) -> str:
    """Empty where the signal, or the look once per second, says that sampling goes on."""
    signo = session.timer.taken()
    if signo in process.STOP_SIGNALS:
        return "terminated"
    if session.parent.is_gone():
        return "parent gone"
    if signo:
        session.timer.start(tick_ns, wake_ns)
    return ""


def _keep_house(session: Session) -> None:
    session.clocks.record("during", read_clocks(CLOCK_BRACKETS))
    if session.samples is not None:
        session.samples.flush()


def _summary(session: Session, reason: str) -> dict[str, Any]:
    rows = session.rows
    failures = rows.failures.items() if rows else ()
    return {
        "v": 1,
        "reason": reason,
        "rows": rows.count if rows else 0,
        "missed": rows.missed if rows else 0,
        "cpu_ns": time.process_time_ns(),
        "details": _details(session.sources),
        "failed": [
            {"source": name, "count": count.total, "last": count.last}
            for name, count in failures
            if count.total
        ],
    }
