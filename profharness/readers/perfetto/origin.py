"""Where a Perfetto trace comes from: its clock, host and sources, and whether its writer lost
events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profharness.readers.bytes.proto_scan import LENGTH, VARINT, scan
from profharness.readers.perfetto.gpu import hosts
from profharness.readers.perfetto.packets import CLOCK_SNAPSHOT, SYSTEM_INFO, Packets
from profharness.readers.perfetto.passes import ATTRIBUTE, MergedPass, merged_passes
from profharness.readers.perfetto.times import BOOTTIME, Times
from profharness.trace.model import ClockDomain

TRACE_STATS, TRACE_ATTRIBUTES = 35, 126
_MONOTONIC = 3
_CLOCKS = {
    1: ClockDomain.REALTIME,
    _MONOTONIC: ClockDomain.MONOTONIC,
    5: ClockDomain.MONOTONIC_RAW,
    BOOTTIME: ClockDomain.BOOTTIME,
}
_VERSION = 4  # of SystemInfo: tracing_service_version
# fields of TraceStats.BufferStats that count what a buffer lost (trace_stats.proto)
_LOSSES = {
    3: "chunks were overwritten",
    18: "chunks were discarded",
    19: "packets were lost by a writer",
    22: "packets were too large",
}


@dataclass(frozen=True)
class Origin:
    """What a file says of itself. `passes` were merged into it; a tool's own file has none."""

    clock: ClockDomain
    host: str
    passes: tuple[MergedPass, ...]
    details: tuple[tuple[str, str], ...]


def read_origin(packets: Packets, times: Times) -> Origin:
    """The origin of one file. In a file of our own the clock is the one that its sources were put
    on.
    """
    stated_attributes = attributes(packets)
    clock = _CLOCKS.get(times.primary or BOOTTIME, ClockDomain.UNKNOWN)
    stated = {
        value
        for key, value in stated_attributes.items()
        if key.startswith(ATTRIBUTE) and key.endswith(".clock")
    }
    if stated:
        clock = _merged_clock(stated)
    rows = packets.of_kind(SYSTEM_INFO)
    versions = packets.payload(rows).pick(_VERSION, LENGTH)
    library = {}
    if len(versions.row):
        library["tracing library"] = (
            packets.data[versions.start[-1] : versions.end[-1]].tobytes().decode("utf-8", "replace")
        )
    named = hosts(packets)
    return Origin(
        clock,
        named.get(0, "") if len(named) == 1 else "",
        merged_passes(stated_attributes),
        tuple(sorted((stated_attributes | library).items())),
    )


def _merged_clock(stated: set[str]) -> ClockDomain:
    """The one clock of the sources; after alignment that is CLOCK_BOOTTIME of the reference
    host.
    """
    if len(stated) > 1:
        return ClockDomain.UNKNOWN
    text = next(iter(stated))
    if text == ClockDomain.RUN.value:
        return ClockDomain.BOOTTIME
    return (
        ClockDomain(text) if text in {clock.value for clock in ClockDomain} else ClockDomain.UNKNOWN
    )


def attributes(packets: Packets) -> dict[str, str]:
    """The trace's attributes, numbers as text."""
    entries = packets.payload(packets.of_kind(TRACE_ATTRIBUTES)).pick(1, LENGTH)
    inner = scan(packets.data, entries.start, entries.end)
    pairs: dict[int, dict[int, str]] = {}
    for row, number, wire, value, start, end in zip(
        inner.row.tolist(),
        inner.number.tolist(),
        inner.wire.tolist(),
        inner.value.tolist(),
        inner.start.tolist(),
        inner.end.tolist(),
        strict=True,
    ):
        text = (
            packets.data[start:end].tobytes().decode("utf-8", "replace")
            if wire == LENGTH
            else str(value)
        )
        pairs.setdefault(row, {})[number] = text
    return {pair.get(1, ""): pair.get(3, pair.get(2, "")) for pair in pairs.values()}


def clock_offset(packets: Packets) -> int:
    """CLOCK_BOOTTIME less CLOCK_MONOTONIC in ns, by the first snapshot that holds both; 0 where
    none does.
    """
    rows = packets.of_kind(CLOCK_SNAPSHOT)
    clocks = packets.payload(rows).pick(1, LENGTH)
    inner = scan(packets.data, clocks.start, clocks.end)
    number, value = inner.last(1, len(clocks.row)), inner.last(2, len(clocks.row))
    for snapshot in np.unique(clocks.row).tolist():
        in_snapshot = clocks.row == snapshot
        boot, monotonic = (
            value[in_snapshot & (number == clock)] for clock in (BOOTTIME, _MONOTONIC)
        )
        if len(boot) and len(monotonic):
            return int(boot[0] - monotonic[0])
    return 0


def dropped(packets: Packets) -> Iterator[tuple[int, str]]:
    """Counts of what the writer lost, by its statistics, with a sentence each."""
    buffers = packets.payload(packets.of_kind(TRACE_STATS)).pick(1, LENGTH)
    fields = scan(packets.data, buffers.start, buffers.end)
    for number, loss in _LOSSES.items():
        count = int(fields.pick(number, VARINT).value.sum())
        if count:
            yield (
                count,
                (
                    f"events dropped: {loss}, the tool's buffer was full; "
                    "figures from this file are too small"
                ),
            )
