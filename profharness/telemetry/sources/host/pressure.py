"""Pressure stall information: how long some task of the node had to wait for a CPU, memory or
I/O.
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import Column, Missing, SampledDevice

RESOURCES = ("cpu", "memory", "io")
PRESSURE_HZ = 2.0  # the totals are exact however seldom they are read


class PressureSource:
    """The `total` of the `some` line of /proc/pressure/*, in µs. It is exact, where the averages
    lag by 10 s and more.
    """

    name = "pressure"
    max_hz = PRESSURE_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, folder: str = "/proc/pressure") -> None:
        self.columns: tuple[Column, ...] = ()
        self._folder = folder
        self._handles: list[int] = []

    def probe(self) -> tuple[Missing, ...]:
        missing, columns = [], []
        for resource in RESOURCES:
            path = f"{self._folder}/{resource}"
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                some_total_us(os.pread(handle, 256, 0))
            except (
                OSError,
                ValueError,
            ) as error:  # EOPNOTSUPP where the kernel was started with psi=0
                missing.append(
                    Missing(
                        f"pressure_{resource}",
                        f"{path}: {getattr(error, 'strerror', None) or error}",
                    )
                )
                continue
            self._handles.append(handle)
            columns.append(Column(f"pressure_{resource}", "share", "counter", 1e-6))
        self.columns = tuple(columns)
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        for place, handle in enumerate(self._handles, at):
            row[place] = some_total_us(os.pread(handle, 256, 0))


def some_total_us(text: bytes) -> int:
    """From `some avg10=0.00 avg60=0.00 avg300=0.00 total=4269620`. Raises ValueError."""
    line = text.split(b"\n", 1)[0]
    if not line.startswith(b"some ") or b"total=" not in line:
        raise ValueError("no line of the form 'some ... total=...'")
    return int(line.rsplit(b"total=", 1)[1])
