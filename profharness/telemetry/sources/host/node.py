"""Telemetry of the whole node: cores busy (/proc/stat) and memory in use (/proc/meminfo),
containers or not.
"""

from __future__ import annotations

import os
import time

from profharness.telemetry.sources import COUNTER_HZ, SLOW_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.host import procfs

BUDGET = 0.001  # share of one core: /proc/stat grows with the number of CPUs and interrupts
_TRIES = 3
_MEMINFO = 256  # bytes: what is wanted stands in the first three lines


class NodeSource:
    """Busy cores; read less often where the kernel takes long to write the file."""

    name = "node"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, path: str = "/proc/stat") -> None:
        self.columns: tuple[Column, ...] = ()
        self.max_hz = COUNTER_HZ
        self._path = path
        self._handle = procfs.open_or_none(path)

    def probe(self) -> tuple[Missing, ...]:
        """Whether /proc/stat can be read; how often follows from what a read costs here."""
        if self._handle is None:
            return (Missing("cpu_node", f"{self._path} cannot be read"),)
        self.columns = (Column("cpu_node", "cores", "counter", 1e-9),)
        self.max_hz = min(self.max_hz, BUDGET / max(self._seconds_per_read(), 1e-6))
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        if self._handle is not None:
            row[at] = busy_ns(os.pread(self._handle, 512, 0))

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What a share of the node's CPUs refers to."""
        return (("node_cpus", str(os.cpu_count() or 1)),)

    def _seconds_per_read(self) -> float:
        """CPU time of the cheapest of a few reads."""
        row: list[int | float] = [0]
        costs = []
        for _ in range(_TRIES):
            before = time.thread_time_ns()
            self.read(row, 0)
            costs.append(time.thread_time_ns() - before)
        return min(costs) / 1e9


class NodeMemorySource:
    """Memory in use."""

    name = "node_memory"
    max_hz = SLOW_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, path: str = "/proc/meminfo") -> None:
        self.columns: tuple[Column, ...] = ()
        self._path = path
        self._handle = procfs.open_or_none(path)

    def probe(self) -> tuple[Missing, ...]:
        """Whether /proc/meminfo tells the available memory."""
        if self._handle is None or used_bytes(os.pread(self._handle, _MEMINFO, 0)) is None:
            return (Missing("memory_node_used", f"{self._path} has no MemAvailable"),)
        self.columns = (Column("memory_node_used", "B", "instant"),)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        if self._handle is not None:
            row[at] = used_bytes(os.pread(self._handle, _MEMINFO, 0)) or 0

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What a share of the node's memory refers to."""
        text = b"" if self._handle is None else os.pread(self._handle, _MEMINFO, 0)
        total = _kilobytes(text, b"MemTotal:")
        return () if total is None else (("node_memory_bytes", str(total * 1024)),)


def busy_ns(text: bytes) -> int:
    """User, nice, system, irq and softirq time of all CPUs in ns (first line of /proc/stat; guests
    are in user).
    """
    fields = text.split(b"\n", 1)[0].split()
    return (
        int(fields[1]) + int(fields[2]) + int(fields[3]) + int(fields[6]) + int(fields[7])
    ) * procfs.TICK_NS


def used_bytes(text: bytes) -> int | None:
    """MemTotal less MemAvailable; None on kernels that do not estimate what is available."""
    total, available = _kilobytes(text, b"MemTotal:"), _kilobytes(text, b"MemAvailable:")
    return None if total is None or available is None else (total - available) * 1024


def _kilobytes(text: bytes, name: bytes) -> int | None:
    at = text.find(name)
    return None if at < 0 else int(text[at + len(name) :].split(None, 1)[0])
