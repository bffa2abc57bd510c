"""Telemetry of the whole node: cores busy (/proc/stat) and memory in use (/proc/meminfo), containers or not."""

from __future__ import annotations

import os
import time

from profharness.telemetry.sources import SLOW_HZ, Column, Missing, SampledDevice, procfs

BUDGET = 0.001  # share of one core: /proc/stat grows with the number of CPUs and interrupts
_TRIES = 3


class NodeSource:
    """At the slow rate, and less often still where the kernel takes long to write the files."""

    name = "node"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, stat_path: str = "/proc/stat", meminfo_path: str = "/proc/meminfo") -> None:
        self.columns: tuple[Column, ...] = ()
        self.max_hz = SLOW_HZ
        self._stat_path = stat_path
        self._stat = procfs.open_or_none(stat_path)
        self._meminfo_path = meminfo_path
        self._meminfo = procfs.open_or_none(meminfo_path)

    def probe(self) -> tuple[Missing, ...]:
        missing = []
        columns = []
        if self._stat is None:
            missing.append(Missing("cpu_node", f"{self._stat_path} cannot be read"))
        else:
            columns.append(Column("cpu_node", "cores", "counter", 1e-9))
        if self._meminfo is None or used_bytes(os.pread(self._meminfo, 4096, 0)) is None:
            missing.append(Missing("memory_node_used", f"{self._meminfo_path} has no MemAvailable"))
            self._meminfo = None
        else:
            columns.append(Column("memory_node_used", "B", "instant"))
        self.columns = tuple(columns)
        if columns:
            self.max_hz = min(self.max_hz, BUDGET / max(self._seconds_per_read(), 1e-6))
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        if self._stat is not None:
            row[at] = busy_ns(os.pread(self._stat, 512, 0))
            at += 1
        if self._meminfo is not None:
            row[at] = used_bytes(os.pread(self._meminfo, 4096, 0)) or 0

    def _seconds_per_read(self) -> float:
        """CPU time of the cheapest of a few reads."""
        row: list[int | float] = [0, 0]
        costs = []
        for _ in range(_TRIES):
            before = time.thread_time_ns()
            self.read(row, 0)
            costs.append(time.thread_time_ns() - before)
        return min(costs) / 1e9


def busy_ns(text: bytes) -> int:
    """User, nice, system, irq and softirq time of all CPUs in ns (first line of /proc/stat; guests are in user)."""
    fields = text.split(b"\n", 1)[0].split()
    return (int(fields[1]) + int(fields[2]) + int(fields[3]) + int(fields[6]) + int(fields[7])) * procfs.TICK_NS


def used_bytes(text: bytes) -> int | None:
    """MemTotal less MemAvailable; None on kernels that do not estimate what is available."""
    sizes = {}
    for line in text.split(b"\n"):
        name, _, rest = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable"):
            sizes[name] = int(rest.split()[0]) * 1024
    return sizes[b"MemTotal"] - sizes[b"MemAvailable"] if len(sizes) == 2 else None
