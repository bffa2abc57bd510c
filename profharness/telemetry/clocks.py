"""Readings of the node's four clocks against one another.

Each clock is read between two reads of CLOCK_MONOTONIC; of 50 such brackets the narrowest counts,
which leaves an error of at most half its width (about 100 ns in Python on an idle core).
"""

from __future__ import annotations

import functools
import json
import time
from typing import Literal, NamedTuple

BRACKETS = 50
Phase = Literal["before", "during", "after"]


class ClockReading(NamedTuple):
    """All four clocks at one instant, in ns; each pair is off by at most `width_ns`."""

    boot_ns: int
    monotonic_ns: int
    monotonic_raw_ns: int
    realtime_ns: int
    width_ns: int


def read_clocks(brackets: int = BRACKETS) -> ClockReading:
    """Takes some 40 µs with 50 brackets."""
    boot, boot_width = _offset(time.CLOCK_BOOTTIME, brackets)
    raw, raw_width = _offset(time.CLOCK_MONOTONIC_RAW, brackets)
    real, real_width = _offset(time.CLOCK_REALTIME, brackets)
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return ClockReading(
        now + boot, now, now + raw, now + real, max(boot_width, raw_width, real_width)
    )


def _offset(clock: int, brackets: int) -> tuple[int, int]:
    """Clock less CLOCK_MONOTONIC, from the narrowest bracket, and that bracket's width."""
    read, monotonic = time.clock_gettime_ns, time.CLOCK_MONOTONIC
    best_width, best_offset = 1 << 62, 0
    for _ in range(brackets):
        before = read(monotonic)
        value = read(clock)
        after = read(monotonic)
        if after - before < best_width:
            best_width = after - before
            best_offset = value - (before + after) // 2
    return best_offset, best_width


def clock_line(host: str, phase: Phase, reading: ClockReading) -> bytes:
    """One line of `<host>.clocks.jsonl`. Written out by hand: once per second, the cold code of an
    encoder would cost more than the readings.
    """
    return (
        f'{{"v":1,"host":{_quoted(host)},"phase":"{phase}","boot_ns":{reading.boot_ns},'
        f'"monotonic_ns":{reading.monotonic_ns},'
        f'"monotonic_raw_ns":{reading.monotonic_raw_ns},"realtime_ns":{reading.realtime_ns},'
        f'"width_ns":{reading.width_ns}}}\n'
    ).encode()


@functools.cache
def _quoted(host: str) -> str:
    return json.dumps(host)
