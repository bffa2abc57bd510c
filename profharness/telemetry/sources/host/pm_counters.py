"""The node's own meter on HPE Cray EX: /sys/cray/pm_counters, readable by everyone, refreshed ten
times a second.

Each file holds a value, its unit and, on newer systems, the time of the reading in µs, as in
`5264034 J 1434582415264812 us`, since 1970 or since the controller's start. `freshness` counts the
refreshes: values read between two equal values of it belong together. `generation` counts changes
of the power caps. An accelerator here is a module as the board meters it (package and memory),
numbered by the board, and whether its order is that of the PCI addresses is not written anywhere:
so its metrics are the node's, named `power_module:accel0`, and never added to what the driver says
of the same package. `analysis.power.module_map` finds the packages afterwards, where the powers
tell.
"""

from __future__ import annotations

import os
import time

from profharness.telemetry.sources import STALE_NS, Column, Missing, SampledDevice
from profharness.telemetry.sources.host import procfs

MAX_HZ = 10.0
HOST_METRICS = (
    "power_node",
    "power_node_energy",
    "power_node_limit",
    "power_cpu_energy",
    "power_memory_energy",
)
_TRIES = 3
_MINUTE_NS = 60_000_000_000
# file, metric and form: of the node, and of each accelerator behind its prefix `accelN_`
_NODE = (
    ("power", "power_node", "instant"),
    ("energy", "power_node_energy", "counter"),
    ("cpu_energy", "power_cpu_energy", "counter"),
    ("memory_energy", "power_memory_energy", "counter"),
)
_MODULE = (("power", "power_module", "instant"), ("energy", "power_module_energy", "counter"))


class PmCountersSource:
    """Power and energy of the node and of its accelerator modules; nothing is read twice in one
    refresh of the meter.
    """

    name = "pm_counters"
    max_hz = MAX_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys") -> None:
        self.columns: tuple[Column, ...] = ()
        self._folder = f"{sysfs}/cray/pm_counters"
        self._freshness: int | None = None
        self._generation: int | None = None
        self._values: list[int] = []  # open files, as the columns after the stamp
        self._caps: list[int] = []  # open files, as the last columns
        self._cap_watts: list[int] = []
        self._last = b""
        self._caps_of = b""
        self._fit = StampFit()

    def probe(self) -> tuple[Missing, ...]:
        """Open the node's meters; they exist on HPE Cray EX only."""
        if not os.path.isdir(self._folder):  # noqa: PTH112 - no pathlib in the sampler
            return tuple(
                Missing(
                    metric, f"{self._folder} is absent: only HPE Cray EX nodes meter themselves"
                )
                for metric in HOST_METRICS
            )
        self._freshness = procfs.open_or_none(f"{self._folder}/freshness")
        if self._freshness is None:
            why = (
                f"{self._folder}/freshness cannot be read: values could not be told to belong "
                "together"
            )
            return tuple(Missing(metric, why) for metric in HOST_METRICS)
        self._generation = procfs.open_or_none(f"{self._folder}/generation")
        modules = self._modules()
        columns = [
            column
            for file, metric, form in _NODE
            for column in self._opened(self._values, file, metric, form)
        ]
        columns += [
            column
            for module in modules
            for file, metric, form in _MODULE
            for column in self._opened(self._values, f"{module}_{file}", f"{metric}:{module}", form)
        ]
        if columns:
            columns += self._opened(
                self._caps, "power_cap", "power_node_limit", "instant", zero_is_none=True
            )
            columns += [
                column
                for module in modules
                for column in self._opened(
                    self._caps,
                    f"{module}_power_cap",
                    f"power_module_limit:{module}",
                    "instant",
                    zero_is_none=True,
                )
            ]
            self.columns = (Column("", "ns", "instant", role="stamp"), *columns)
        self._cap_watts = [0] * len(self._caps)
        metrics = {column.metric for column in columns}
        return tuple(
            Missing(metric, f"{self._folder} does not give it")
            for metric in HOST_METRICS
            if metric not in metrics
        )

    def _modules(self) -> list[str]:
        """`accel0`, `accel1` and so on, in the board's order."""
        names = os.listdir(self._folder)  # noqa: PTH208 - no pathlib in the sampler
        numbers = (
            name[5:-6] for name in names if name.startswith("accel") and name.endswith("_power")
        )
        return [
            f"accel{number}"
            for number in sorted(int(number) for number in numbers if number.isdigit())
        ]

    def _opened(
        self, handles: list[int], file: str, metric: str, form: str, *, zero_is_none: bool = False
    ) -> list[Column]:
        """The column of a file that holds a number; a cap of 0 stands for none."""
        handle = procfs.open_or_none(f"{self._folder}/{file}")
        reading = None if handle is None else parsed(os.pread(handle, 128, 0))
        if handle is None or reading is None or (zero_is_none and not reading[0]):
            return []
        handles.append(handle)
        return [Column(metric, "W", "counter" if form == "counter" else "instant")]

    def read(self, row: list[int | float], at: int) -> None:
        """Nothing where the meter was not refreshed since the last read. Raises ValueError where it
        is refreshed again and again meanwhile.
        """
        assert self._freshness is not None
        for _ in range(_TRIES):
            fresh = os.pread(self._freshness, 64, 0)
            if fresh == self._last:
                return
            now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            readings = [parsed(os.pread(handle, 128, 0)) for handle in self._values]
            if os.pread(self._freshness, 64, 0) == fresh:
                break
        else:
            raise ValueError("the meter was refreshed during every try to read it")
        self._last = fresh
        stamp_us = next((reading[1] for reading in readings if reading is not None), 0)
        row[at] = self._fit.at(stamp_us, now)
        for place, reading in enumerate(readings, at + 1):
            if reading is not None:
                row[place] = reading[0]
        first = at + 1 + len(readings)
        row[first : first + len(self._caps)] = self._limits()

    def _limits(self) -> list[int]:
        """Read anew only when `generation` says that one was changed."""
        now = b"" if self._generation is None else os.pread(self._generation, 64, 0)
        if now != self._caps_of or not now:
            self._caps_of = now
            readings = [parsed(os.pread(handle, 128, 0)) for handle in self._caps]
            self._cap_watts = [
                before if reading is None else reading[0]
                for before, reading in zip(self._cap_watts, readings, strict=True)
            ]
        return self._cap_watts


class StampFit:
    """Brings the meter's stamps to CLOCK_BOOTTIME, whatever they count from (1970 on some systems,
    the start of the node's controller on others): a stamp plus the smallest "now less stamp" that
    was seen, in this minute or the one before, so that a drifting clock is followed.

    Between two readings the stamps' own difference stands. Their place is late by the least delay
    from the meter to a read, which nothing tells.
    """

    def __init__(self) -> None:
        self._since = 0
        self._smallest: list[int] = []  # of the minute before, of this one

    def at(self, stamp_us: int, now: int) -> int:
        """CLOCK_BOOTTIME ns of the stamp at the read `now`, never after it; now without a stamp."""
        if not stamp_us:
            return now
        behind = now - 1000 * stamp_us
        if not self._smallest or behind - min(self._smallest) >= STALE_NS:
            self._smallest, self._since = [behind], now  # the first one, or the clock was set
        elif now - self._since >= _MINUTE_NS:
            self._smallest, self._since = [self._smallest[-1], behind], now
        else:
            self._smallest[-1] = min(self._smallest[-1], behind)
        return 1000 * stamp_us + min(self._smallest)


def parsed(text: bytes) -> tuple[int, int] | None:
    """Value and time in µs since 1970 (0 where the file has none); None where there is no whole
    number.
    """
    words = text.split()
    if not words or not words[0].isdigit():
        return None
    return int(words[0]), int(words[2]) if len(words) > 3 and words[3] == b"us" and words[
        2
    ].isdigit() else 0
