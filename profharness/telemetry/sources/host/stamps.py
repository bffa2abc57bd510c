"""Times that a driver gives with its values, brought to CLOCK_BOOTTIME."""

from __future__ import annotations

import time


def realtime_offset_ns() -> int:
    """CLOCK_REALTIME less CLOCK_BOOTTIME; the narrower of two readings of both clocks counts."""
    width, offset = 1 << 62, 0
    for _ in range(2):
        before, real, after = (
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            time.time_ns(),
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        )
        if after - before < width:
            width, offset = after - before, real - (before + after) // 2
    return offset
