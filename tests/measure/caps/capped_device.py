"""An emulated device that always draws what its cap lets it: rewrites its table until stdin closes.

`python -m tests.measure.caps.capped_device TABLE CAP`
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from tests.telemetry.emulated import State, table

DRAW_W = 400
PERIOD_S = 0.005


def power_w(cap_w: float) -> int:
    """What the device draws under a cap."""
    return round(min(cap_w, DRAW_W))


def speed(cap_w: float) -> float:
    """How fast it computes under a cap, 1 without."""
    return float((power_w(cap_w) / DRAW_W) ** 0.5)


def main(path: str, cap: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    last, joules, number = time.clock_gettime_ns(time.CLOCK_BOOTTIME), 0.0, 0
    power = power_w(int(Path(cap).read_text() or 0) / 1e6)
    while not select.select([sys.stdin], [], [], PERIOD_S)[0]:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        joules += power * (now - last) / 1e9
        last, number = now, number + 1
        # dither, without which it would look like a sensor that is seldom new
        power = power_w(int(Path(cap).read_text() or 0) / 1e6) + number % 7 - 3
        os.pwrite(handle, table("1.3", State(power_w=power, energy_j=joules, stamp_ns=now)), 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
