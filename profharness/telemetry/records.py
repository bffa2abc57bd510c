"""The sampler's file format: a header that describes the rows, then rows of fixed size.

    bytes 0-7    magic "PHTELEM1"
    bytes 8-11   length of the header in bytes (a multiple of 8), little endian
    bytes 12-15  zero
    header       JSON, padded with spaces: v, host, pid, boot_id, hz, period_ns, clock, devices, missing, columns
    rows         one 8-byte field per column, little endian: int64 (type "q") or float64 (type "d")

A column's `role` says what it holds: `deadline` (CLOCK_MONOTONIC ns at which the row was due), `boot`
(CLOCK_BOOTTIME ns at the row's start), `missed` (ticks skipped since the row before), `before` and `after`
(CLOCK_MONOTONIC ns around the read of `source`), `stamp` (the reading's own time, CLOCK_BOOTTIME ns) or `value`.
A value column has `metric`, `unit`, `device` (position in `devices`, -1 for the host), `form` and `scale`: an `instant` is
raw × scale; a `counter` gives, between two rows, (difference of raw) × scale / seconds. -1 in an integer
column and NaN in a float column mean that the value was not read in that row.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from profharness.telemetry.sources import Column, SampledDevice, Source

MAGIC = b"PHTELEM1"
VERSION = 1
INTEGER_MISSING = -1
FLOAT_MISSING = float("nan")


class Slot(NamedTuple):
    """Where one source's fields stand in a row: its two read stamps, then its columns."""

    source: Source
    first: int


class Layout:
    """The order of fields in a row: deadline, boot, missed, then per source before, after and its columns."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.columns: list[dict[str, Any]] = [
            {"role": "deadline", "type": "q"}, {"role": "boot", "type": "q"}, {"role": "missed", "type": "q"}]
        self.slots: list[Slot] = []
        self.devices: list[dict[str, str]] = []
        for source in sources:
            self.slots.append(Slot(source, len(self.columns)))
            places = [self._place(device) for device in source.devices]
            self.columns += [{"role": role, "type": "q", "source": source.name} for role in ("before", "after")]
            self.columns += [_described(column, source.name, places) for column in source.columns]
        self.row = struct.Struct("<" + "".join(column["type"] for column in self.columns))
        self.blank: list[int | float] = [
            FLOAT_MISSING if column["type"] == "d" else INTEGER_MISSING for column in self.columns]

    def _place(self, device: SampledDevice) -> int:
        """Position in `devices`; what several sources say of one device belongs together."""
        described = device._asdict()
        if described not in self.devices:
            self.devices.append(described)
        return self.devices.index(described)


def _described(column: Column, source: str, places: Sequence[int]) -> dict[str, Any]:
    device = places[column.device] if column.device >= 0 else -1
    return {**column._asdict(), "source": source, "device": device}


def encode_header(layout: Layout, facts: dict[str, Any]) -> bytes:
    """Magic, length and JSON; `facts` holds the fields besides `v`, `devices` and `columns`."""
    text = json.dumps({"v": VERSION, **facts, "devices": layout.devices, "columns": layout.columns},
                      separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return MAGIC + struct.pack("<I4x", len(text)) + text
