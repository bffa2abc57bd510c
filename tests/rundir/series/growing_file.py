"""A sampler's file that grows row by row, of a source whose numbers are known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from profharness.telemetry.files import AppendFile
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sources import Column, Missing, SampledDevice

TENTH = 100_000_000
GPU = SampledDevice("0", "0000:c1:00.0", "MI300X", "amd")
OTHER = SampledDevice("1", "GPU-1234", "H100", "nvidia")


class Known:
    """Bytes of a network, energy of two devices and power of one, as the test sets them."""

    name = "known"
    max_hz = 100.0
    devices = (GPU, OTHER)
    columns = (
        Column("network_sent", "B/s", "counter"),
        Column("network_sent:eth0", "B/s", "counter"),
        Column("power_energy", "W", "counter", 1e-3, device=0),
        Column("power_energy", "W", "counter", 1e-3, device=1),
        Column("power_w", "W", "instant", device=0),
    )

    def probe(self) -> tuple[Missing, ...]:
        return ()

    def read(self, row: list[Any], at: int) -> None:
        raise NotImplementedError


class GrowingFile:
    """Rows a tenth of a second apart, the first of which is `ago_s` old."""

    def __init__(self, path: Path, ago_s: float) -> None:
        self.layout = Layout((Known(),))
        self.file = AppendFile(str(path))
        facts = {"host": "n1", "hz": 10.0, "profharness": "9.9", "period_ns": TENTH}
        self.file.append(encode_header(self.layout, facts))
        self.at = time.monotonic_ns() - round(ago_s * 1e9)
        self.boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()

    def add(self, sent: int, millijoules: int, watts: int) -> None:
        """One more row; the second device has used twice the energy."""
        raw = (sent, sent, millijoules, 2 * millijoules, watts)
        stamps = (self.at, self.at + self.boot, 0, self.at, self.at + 2000)
        self.file.append(self.layout.row.pack(*stamps, *raw))
        self.file.flush()
        self.at += TENTH
