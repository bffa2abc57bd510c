"""Rewrites an emulated device's table two hundred times a second with a power waveform of known
energy.

`python -m tests.telemetry.animator TABLE TRUTH`: until its stdin closes. TRUTH gets one line per
write: CLOCK_BOOTTIME ns, the joules since the first, and CLOCK_BOOTTIME again when it was written.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from tests.telemetry.emulated import State, table

PERIOD_S = 0.005
HALF_WAVE_NS = 250_000_000


def watts(since_ns: int, number: int) -> int:
    """A square wave of 2 Hz between 200 W and 400 W, with a little dither."""
    return 200 + 200 * (since_ns // HALF_WAVE_NS % 2) + number % 7


def main(path: str, truth: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    start = last = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    joules, number = 0.0, 0
    with Path(truth).open("w", encoding="ascii") as log:
        while not select.select([sys.stdin], [], [], PERIOD_S)[0]:
            now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            power = watts(now - start, number)
            joules += power * (now - last) / 1e9
            last, number = now, number + 1
            os.pwrite(handle, table("1.3", State(power_w=power, energy_j=joules, stamp_ns=now)), 0)
            log.write(f"{now} {joules!r} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
