"""Times of the packets of a Perfetto trace on its own clock.

A clock is converted by the offset of the latest snapshot at or before the time, as a trace
processor does; an incremental clock (ids 64 to 127, of one sequence) counts from its snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.bytes.proto_scan import I64, LENGTH, Mask, scan
from profharness.readers.perfetto.packets import CLOCK_SNAPSHOT, MISSING, Packets

BOOTTIME = 6
_FIRST_SEQUENCE_CLOCK, _LAST_SEQUENCE_CLOCK = 64, 127


@dataclass(frozen=True)
class Times:
    """Per packet: its time (MISSING where it has none), and whether its clock is unrelated to the
    trace's.
    """

    ns: I64
    unrelated: Mask
    snapshots: int
    primary: int


@dataclass(frozen=True)
class _Readings:
    """Clock values of all snapshots, with the trace clock's value in the same snapshot (MISSING:
    none).
    """

    packet: I64
    clock: I64
    value: I64
    multiplier: I64
    incremental: Mask
    trace_value: I64

    def take(self, where: Mask) -> _Readings:
        return _Readings(
            self.packet[where],
            self.clock[where],
            self.value[where],
            self.multiplier[where],
            self.incremental[where],
            self.trace_value[where],
        )


def packet_times(packets: Packets, default_clock: I64) -> Times:
    """Times of all packets; `default_clock` per packet is that of its sequence, MISSING for
    none.
    """
    readings, snapshots, primary = _readings(packets)
    target = primary or BOOTTIME
    clock = np.where(
        packets.clock != MISSING,
        packets.clock,
        np.where(default_clock != MISSING, default_clock, target),
    )
    timed = packets.timestamp != MISSING
    ns = packets.timestamp.copy()
    unrelated = np.zeros(len(packets), np.bool_)
    for number in np.unique(clock[timed & (clock != target)]):
        rows = np.flatnonzero(timed & (clock == number))
        if _FIRST_SEQUENCE_CLOCK <= number <= _LAST_SEQUENCE_CLOCK:
            groups = [
                rows[packets.sequence[rows] == sequence]
                for sequence in np.unique(packets.sequence[rows])
            ]
        else:
            groups = [rows]
        for group in groups:
            usable = (readings.clock == number) & (readings.trace_value != MISSING)
            if number >= _FIRST_SEQUENCE_CLOCK and number <= _LAST_SEQUENCE_CLOCK:
                usable &= packets.sequence[readings.packet] == packets.sequence[group[0]]
            if usable.any():
                ns[group] = _converted(packets.timestamp[group], group, readings.take(usable))
            else:
                unrelated[group] = True
    return Times(ns, unrelated, snapshots, primary)


def _readings(packets: Packets) -> tuple[_Readings, int, int]:
    rows = packets.of_kind(CLOCK_SNAPSHOT)
    fields = packets.payload(rows)
    primary = int(fields.last(2, len(rows))[-1]) if len(rows) else 0
    clocks = fields.pick(1, LENGTH)
    inner = scan(packets.data, clocks.start, clocks.end)
    count = len(clocks.row)
    clock, value = inner.last(1, count), inner.last(2, count)
    trace_value = np.full(len(rows), MISSING, np.int64)
    on_trace_clock = clock == (primary or BOOTTIME)
    trace_value[clocks.row[on_trace_clock]] = value[on_trace_clock]
    return (
        _Readings(
            rows[clocks.row],
            clock,
            value,
            np.maximum(inner.last(4, count, 1), 1),
            inner.last(3, count) > 0,
            trace_value[clocks.row],
        ),
        len(rows),
        primary,
    )


def _converted(raw: I64, packet: I64, readings: _Readings) -> I64:
    """Times on the trace clock of values of one clock."""
    if readings.incremental.any():
        latest = (np.searchsorted(readings.packet, packet, "right") - 1).clip(min=0)
        steps = raw * readings.multiplier[latest]
        total = np.cumsum(steps)
        before = np.concatenate(([0], total))[np.searchsorted(latest, latest)]
        counted: I64 = readings.trace_value[latest] + total - before
        return counted
    order = np.argsort(readings.value, kind="stable")
    latest = order[(np.searchsorted(readings.value[order], raw, "right") - 1).clip(min=0)]
    shifted: I64 = (
        readings.trace_value[latest] + (raw - readings.value[latest]) * readings.multiplier[latest]
    )
    return shifted
