"""The telemetry source `counters-exporter`: what an exporter publishes of this node's devices,
asked once a second by a thread, so that the other sources never wait for an answer.

The exporter is an address, or `rdci` for RDC's daemon.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from profharness.telemetry.sources import Column, Missing, SampledDevice, Target
from profharness.telemetry.sources.amd.counting.preflight import Countable, countable
from profharness.telemetry.sources.amd.counting.sets import BUSY, CYCLES, PREFIX
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.exporter import known, rdci
from profharness.telemetry.sources.amd.exporter.answer import (
    TIMEOUT_S,
    ExporterError,
    fetch,
    parse_address,
)
from profharness.telemetry.sources.amd.metrics import sampled

NAME = "counters-exporter"
COUNTERS = "device-counters"
EVERY_S = 1.0
FIRST_S = 5.0  # the first answer may have to start the exporter's own counting
LEAST_HZ = 50e6  # of a compute die's cycles; totals that grow less start anew at each reading
RESETS = 3  # after so many it is the exporter's way, not its restart


class _Answer(NamedTuple):
    boot_ns: int
    values: Mapping[int, Mapping[str, float]]


class _Device(NamedTuple):
    number: int  # the exporter's
    start: int  # of its columns
    names: tuple[str, ...]
    facts: Countable | None


class Exporter(NamedTuple):
    """Where an exporter is, for people, and how it is asked, for so many seconds at most."""

    place: str
    ask: Callable[[float], known.Published]


def exporter_of(text: str) -> Exporter:
    """What the user named. Raises ValueError, with a clause that repeats no secret."""
    daemon = rdci.parse(text)
    if daemon is not None:
        return Exporter(daemon or "localhost", lambda _: rdci.ask(daemon))
    address = parse_address(text)

    def ask(seconds: float) -> known.Published:
        return known.published(fetch(address, seconds), address.place)

    return Exporter(address.place, ask)


class ExporterSource:
    """All devices that the exporter names."""

    name = NAME
    max_hz = 2.0

    def __init__(self, dies: list[Die], target: Target) -> None:
        self.columns: tuple[Column, ...] = ()
        self.devices: tuple[SampledDevice, ...] = ()
        self._dies, self._target = dies, target
        self._of: tuple[_Device, ...] = ()
        self._kind = self._place = ""
        self._answers: list[_Answer | str] = []  # the newest, or why there is none
        self._end = threading.Event()
        self._last: dict[int, tuple[int, float]] = {}  # time and cycles of what was written
        self._resets = 0
        self._intervals: list[float] = []

    def probe(self) -> tuple[Missing, ...]:
        """Ask once, and go on asking where the answer can be used."""
        try:
            exporter = exporter_of(self._target.exporter)
            self._place = exporter.place
            found = exporter.ask(FIRST_S)
            ordered = known.in_order(found, self._dies, self._place)
        except (ExporterError, ValueError) as error:
            return (Missing(NAME, str(error)),)
        self._kind = found.kind
        missing = self._describe(found, ordered)
        if self.columns:
            threading.Thread(target=self._ask, args=(exporter,), daemon=True).start()
            return tuple(missing)
        return (*missing, Missing(NAME, "; ".join(dict.fromkeys(one.why for one in missing))))

    def _describe(self, found: known.Published, ordered: list[Die]) -> list[Missing]:
        columns: list[Column] = []
        devices: list[_Device] = []
        missing = []
        for number, die in enumerate(ordered):
            try:
                facts, names = self._usable(die, found, number)
            except ExporterError as error:
                missing.append(Missing(f"{COUNTERS}:{die.identity}", str(error)))
                continue
            place = len(devices)
            devices.append(_Device(number, len(columns), names, facts))
            columns.append(Column("", "ns", "instant", device=place, role="stamp"))
            columns += [_column(name, place, facts) for name in names]
            self.devices = (*self.devices, sampled(die))
        self.columns, self._of = tuple(columns), tuple(devices)
        return missing

    def _usable(
        self, die: Die, found: known.Published, number: int
    ) -> tuple[Countable | None, tuple[str, ...]]:
        values = found.values[number]
        if found.kind != known.OMNISTAT:
            return None, tuple(values)
        facts = countable(die, self._target.sysfs)
        if isinstance(facts, str):
            raise ExporterError(facts)
        names = known.usable(facts, values)
        if not names:
            raise ExporterError(
                f"omnistat at {self._place} publishes {', '.join(sorted(values))}, from which no "
                f"figure follows: it takes {CYCLES}, {BUSY} and counters such as SQ_BUSY_CU_CYCLES"
            )
        return facts, names

    def _ask(self, exporter: Exporter) -> None:
        due = time.monotonic() + EVERY_S
        while not self._end.wait(max(due - time.monotonic(), 0)):
            due = max(due + EVERY_S, time.monotonic())
            begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            try:
                values = exporter.ask(TIMEOUT_S).values
                end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                self._answers = [_Answer((begin + end) // 2, values)]
            except ExporterError as error:
                self._answers = [str(error)]
            except Exception as error:  # noqa: BLE001  whatever a foreign server sends
                self._answers = [f"{exporter.place}: {type(error).__name__}"]

    def read(self, row: list[Any], at: int) -> None:
        """Each answer goes into one row. Raises ExporterError where it was none."""
        answers, self._answers = self._answers, []
        for answer in answers:
            if isinstance(answer, str):
                raise ExporterError(answer)
            for device in self._of:
                values = answer.values.get(device.number)
                if values and self._is_new(device, values, answer.boot_ns):
                    first = at + device.start
                    row[first] = answer.boot_ns
                    for column, name in enumerate(device.names, first + 1):
                        if name in values:
                            row[column] = int(values[name]) if device.facts else values[name]
            if self._resets > RESETS * len(self._of):
                raise ExporterError(
                    f"totals of {self._kind} at {self._place} start anew again and again: "
                    "give it sampling_mode = constant"
                )

    def _is_new(self, device: _Device, values: Mapping[str, float], now_ns: int) -> bool:
        """Whether totals have grown as a free-running clock does since those that were written; not
        so where the exporter repeats itself. What went back is written: an interval ends there.
        """
        if device.facts is None:
            return True
        cycles = values.get(CYCLES)
        if cycles is None:
            return False
        then_ns, before = self._last.get(device.number, (0, 0.0))
        if then_ns and cycles >= before:
            seconds = max(now_ns - then_ns, 1) / 1e9
            if cycles - before < LEAST_HZ * device.facts.dies * seconds:
                return False
            self._intervals.append(seconds)
        elif then_ns:
            self._resets += 1
        self._last[device.number] = now_ns, cycles
        return True

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Whose figures these are, and what formulas need of each device."""
        whose = f"{self._kind} at {self._place}"
        hz = 1 / max(statistics.median(self._intervals), EVERY_S) if self._intervals else 1.0
        return (
            (NAME, whose),
            *(
                (
                    f"{COUNTERS}.{device.facts.die.identity}",
                    json.dumps(
                        {
                            "arch": device.facts.counters.arch,
                            "compute_units": device.facts.compute_units,
                            "simds": device.facts.simds,
                            "waves": device.facts.waves,
                            "dies": 1,  # the mean over all of them stands for the first
                            "mode": device.facts.die.mode,
                            "why": f"{whose} counts no shader of other processes",
                            "hz": hz,
                        },
                        separators=(",", ":"),
                    ),
                )
                for device in self._of
                if device.facts is not None
            ),
        )

    def close(self) -> None:
        """Ask no more."""
        self._end.set()


def _column(name: str, place: int, facts: Countable | None) -> Column:
    if facts is None:
        metric, scale = known.GAUGES[name]
        return Column(metric, "share", "instant", scale, "d", device=place)
    if name in (CYCLES, BUSY):  # summed over the dies, whose clocks run alike
        return Column(f"{PREFIX}:{name}:0", "/s", "counter", 1 / facts.dies, device=place)
    return Column(f"{PREFIX}:{name}", "/s", "counter", device=place)
