"""The telemetry source `device-counters`: totals of hardware counters of all devices, as the
counting process sends them. Formulas are the reader's (`profharness.trace.device_counters`).

Counting begins once per run and is never switched: at the sampler's start, or where a gate file was
named, when that file appears; when it is removed, counting ends. `<gate>.ready` is there from the
begin to the end of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

from profharness.telemetry.files import write_json
from profharness.telemetry.sources import Column, Missing, SampledDevice, Target
from profharness.telemetry.sources.amd.counting.child import Task
from profharness.telemetry.sources.amd.counting.helper import HELD, Helper, HelperEndedError
from profharness.telemetry.sources.amd.counting.libraries import Libraries, find_libraries
from profharness.telemetry.sources.amd.counting.preflight import Countable, Preflight
from profharness.telemetry.sources.amd.counting.service import NOT_READ, Wanted
from profharness.telemetry.sources.amd.counting.sets import PREFIX
from profharness.telemetry.sources.amd.metrics import sampled

NAME = "device-counters"
MAX_HZ = 10.0
HELLO_S = 8.0  # the sampler is given ten seconds to be ready
LOOKS = 4  # reads per sample: a sample waits at most so small a part of its period
VAIN = 5  # samples in a row that failed; the sampler leaves a source alone after more, held or not
_MOVED_NS = 1_000_000  # a suspended host moves CLOCK_BOOTTIME against CLOCK_MONOTONIC


class DeviceCountersSource:
    """All countable devices; a row gets the newest totals, once, whenever they have come."""

    name = NAME

    def __init__(self, found: Preflight, target: Target) -> None:
        self.max_hz = LOOKS * target.counters_hz
        self.columns: tuple[Column, ...] = ()
        self.devices: tuple[SampledDevice, ...] = tuple(
            sampled(device.die) for device in found.devices
        )
        self._found = found
        self._target = target
        self._names = tuple(device.counters.columns(device.dies) for device in found.devices)
        self._starts: list[int] = []
        self._helper: Helper | None = None
        self._ended = self._told = False
        self._troubles = self._vain = 0
        self._ready = f"{target.counting_gate}.ready" if target.counting_gate else ""
        self._reported: tuple[Missing, ...] = ()
        self._offset_ns = _boot_less_monotonic()

    def probe(self) -> tuple[Missing, ...]:
        """Start counting, unless it is for the gate to say when; name each device that gives
        nothing.
        """
        missing = [Missing(f"{NAME}:{identity}", why) for identity, why in self._found.refused]
        if self._found.level == "none":
            return (*missing, Missing(NAME, self._found.why))
        libraries = find_libraries()
        if isinstance(libraries, str):
            return (*missing, Missing(NAME, libraries))
        self._libraries = libraries
        if not self._target.counting_gate:
            helper = self._start(libraries)
            helper.wait_hello(HELLO_S)
            if helper.why:
                return (*missing, Missing(NAME, helper.why))
            self._reported = self._left_out()
            missing += self._reported
        self.columns = tuple(self._columns())
        return tuple(missing)

    def _columns(self) -> list[Column]:
        columns: list[Column] = []
        for place, names in enumerate(self._names):
            self._starts.append(len(columns))
            columns.append(Column("", "ns", "instant", device=place, role="stamp"))
            columns += [Column(f"{PREFIX}:{name}", "/s", "counter", device=place) for name in names]
        return columns

    def _start(self, libraries: Libraries) -> Helper:
        task = Task(
            libraries.sdk,
            libraries.hsa,
            self._target.counters_hz,
            tuple(
                Wanted(device.die.gpu_id, device.counters.blocks, names)
                for device, names in zip(self._found.devices, self._names, strict=True)
            ),
        )
        self._helper = Helper(task)
        return self._helper

    def _left_out(self) -> tuple[Missing, ...]:
        """Devices that the library cannot count on, and counters that it lacks."""
        missing = []
        for die, state in zip(self._found.devices, self._states(), strict=True):
            if state["why"]:
                missing.append(Missing(f"{NAME}:{die.die.identity}", state["why"]))
            elif state["dropped"]:
                missing.append(
                    Missing(
                        f"{NAME}:{die.die.identity}",
                        f"this library lacks {', '.join(state['dropped'])}, or has no room for "
                        "them beside the others",
                    )
                )
        return tuple(missing)

    def _states(self) -> list[dict[str, Any]]:
        hello = None if self._helper is None else self._helper.hello
        if hello is None:
            return [{"why": "", "dropped": []} for _ in self._found.devices]
        states: list[dict[str, Any]] = hello["devices"]
        return states

    def read(self, row: list[Any], at: int) -> None:
        """Raises HelperEndedError once the counting process has ended by itself, and ValueError for
        a sample that it could not take.
        """
        gate = self._target.counting_gate
        is_open = not gate or os.path.exists(gate)  # noqa: PTH110 - no pathlib in the sampler
        if gate and is_open and self._helper is None:
            self._start(self._libraries)
        try:
            self._take(row, at)
        finally:
            if not is_open:
                self._let_go()

    def _take(self, row: list[Any], at: int) -> None:
        helper = self._helper
        if helper is None or self._ended:
            return
        try:
            records = helper.take()
        except HelperEndedError:
            self._ended = True
            self._tell()
            raise
        self._tell()
        for record in records:  # of several the newest counts: they are totals
            first = at + self._starts[record.place]
            row[first] = (record.before_ns + record.after_ns) // 2 + self._boot_offset()
            for column, total in enumerate(record.totals, first + 1):
                if total != NOT_READ:
                    row[column] = total
        self._vain = 0 if records else self._vain
        if helper.troubles > self._troubles and not records:
            self._troubles = helper.troubles
            self._vain += 1
            if self._vain >= VAIN:
                self.close()
                raise HelperEndedError(f"no sample could be taken any more: {helper.trouble}")
            raise ValueError(helper.trouble)

    def _let_go(self) -> None:
        """The gate is closed: end the counting, and take back what was said beside it, so that who
        closed it knows the devices to be free.
        """
        self.close()
        if self._told:
            self._told = False
            with contextlib.suppress(OSError):
                os.unlink(self._ready)  # noqa: PTH108 - no pathlib in the sampler

    def _tell(self) -> None:
        """Who opened the gate waits for this: that counting has begun, or why it has not."""
        helper = self._helper
        if self._ready and helper is not None and not self._told and (helper.hello or helper.why):
            self._told = True
            write_json(self._ready, {"why": helper.why})

    def _boot_offset(self) -> int:
        now = _boot_less_monotonic()
        if abs(now - self._offset_ns) > _MOVED_NS:
            self._offset_ns = now
        return self._offset_ns

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What formulas need of each device, and what was seen: one JSON text per device, by
        `device-counters.<identity>`. What is left out is known only once counting has begun, which
        may be long after `probe`.
        """
        warnings = () if self._helper is None else self._helper.warnings()
        hello = (None if self._helper is None else self._helper.hello) or {}
        late = [absent for absent in self._left_out() if absent not in self._reported]
        return (
            *((f"missing.{absent.metric}", absent.why) for absent in late),
            *self._facts(warnings, hello.get("sdk", "")),
        )

    def _facts(self, warnings: tuple[str, ...], sdk: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (
                f"{NAME}.{device.die.identity}",
                json.dumps(
                    _facts_of(device)
                    | {
                        "level": self._found.level,
                        "why": "; ".join(text for text in (self._found.why, *warnings) if text),
                        "shared": HELD in warnings,
                        "sdk": sdk,
                        # the sampler takes only the newest totals at each of its own reads
                        "hz": min(self._target.counters_hz, self._target.hz),
                    },
                    separators=(",", ":"),
                ),
            )
            for device in self._found.devices
        )

    def close(self) -> None:
        """Let the counting process stop its counters, which frees the devices for others."""
        if self._helper is not None and not self._ended:
            self._ended = True
            self._helper.close()


def _facts_of(device: Countable) -> dict[str, Any]:
    return {
        "arch": device.counters.arch,
        "compute_units": device.compute_units,
        "simds": device.simds,
        "waves": device.waves,
        "dies": device.dies,
        "mode": device.die.mode,
    }


def _boot_less_monotonic() -> int:
    """CLOCK_BOOTTIME less CLOCK_MONOTONIC in ns, to some hundred of them."""
    before = time.monotonic_ns()
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return boot - (before + time.monotonic_ns()) // 2
