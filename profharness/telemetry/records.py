"""The sampler's file format: a header that describes the rows, then rows of fixed size.

    bytes 0-7    magic "PHTELEM1"
    bytes 8-11   length of the header in bytes (a multiple of 8), little endian
    bytes 12-15  zero
    header       JSON, padded with spaces: v, host, pid, boot_id, hz, period_ns, rates (of each
                 source, in Hz), clock, devices, missing, details (pairs of name and text
                 that sources say of themselves), width, columns
    rows         `width` bytes each, little endian: int64 (type "q") or float64 (type "d") fields,
                 and blocks of n bytes (type "<n>s")

A column's `at` is its place in the row in bytes, and its `role` says what it holds: `deadline`
(CLOCK_MONOTONIC ns at which the row was due), `boot` (CLOCK_BOOTTIME ns at the row's start),
`missed` (ticks skipped since the row before), `before` and `after` (CLOCK_MONOTONIC ns around the
read of `source`), `stamp` (the reading's own time, CLOCK_BOOTTIME ns), `block` (bytes as a driver
gave them) or `value`. A value column has `metric`, `unit`, `device` (position in `devices`, -1 for
the host), `form` and `scale`: an `instant` is raw × scale; a `counter` gives, between two rows,
(difference of raw) × scale / seconds. A column with `taken` has no field: its value stands in the
source's block, `taken` counting from the row's begin (`profharness.telemetry.sources.Column` says
how). Ones in all bits mean that a field was not read in that row: -1 in an integer column, a NaN in
a float column, and in a block what its driver leaves where it sets nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from profharness.telemetry.sources import Column, SampledDevice, Source, Taken

MAGIC = b"PHTELEM1"
VERSION = 2
INTEGER_MISSING = -1
FLOAT_MISSING = float("nan")
FIELD_BYTES = 8


class Slot(NamedTuple):
    """Where one source's fields stand in a row: its two read stamps, then its columns, up to
    `end`.
    """

    source: Source
    first: int
    end: int


class Layout:
    """The order of fields in a row: deadline, boot, missed, then per source before, after and its
    columns.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.columns: list[dict[str, Any]] = []
        self.types: list[str] = []  # of the fields, in their order
        self.slots: list[Slot] = []
        self.devices: list[dict[str, str]] = []
        self.width = 0
        for role in ("deadline", "boot", "missed"):
            self._add({"role": role, "type": "q"})
        for source in sources:
            first = len(self.types)
            for role in ("before", "after"):
                self._add({"role": role, "type": "q", "source": source.name})
            self._add_source(source, [self._place(device) for device in source.devices])
            self.slots.append(Slot(source, first, len(self.types)))
        self.row = struct.Struct("<" + "".join(self.types))
        self.blank: list[Any] = [_blank(kind) for kind in self.types]

    def _place(self, device: SampledDevice) -> int:
        """Position in `devices`; what several sources say of one device belongs together."""
        described = device._asdict()
        if described not in self.devices:
            self.devices.append(described)
        return self.devices.index(described)

    def _add_source(self, source: Source, places: Sequence[int]) -> None:
        block = 0
        for column in source.columns:
            if column.role == "block":
                block = self.width
            facts = dict(_described(column, block))
            self._add(
                {
                    "source": source.name,
                    **facts,
                    "device": places[column.device] if column.device >= 0 else -1,
                },
                has_field=not column.taken,
            )

    def _add(self, described: dict[str, Any], *, has_field: bool = True) -> None:
        if has_field:
            described["at"] = self.width
            self.types.append(described["type"])
            self.width += struct.calcsize(described["type"])
        self.columns.append(described)


def _blank(kind: str) -> int | float | bytes:
    """What stands for a field that was not read."""
    if kind == "d":
        return FLOAT_MISSING
    return INTEGER_MISSING if kind == "q" else b"\xff" * struct.calcsize(kind)


def _described(column: Column, block: int) -> Iterator[tuple[str, Any]]:
    """A column's facts, without those that say nothing; the places in its block from the row's
    begin on.
    """
    yield from (
        ("role", column.role),
        ("type", column.type),
        ("metric", column.metric),
        ("unit", column.unit),
        ("form", column.form),
        ("scale", column.scale),
    )
    if column.taken:
        yield "taken", [_moved(taken, block) for taken in column.taken]
        yield "how", column.how
    if column.over is not None:
        yield from (("over", _moved(column.over, block)), ("at_most", column.at_most))
    if column.bits:
        yield "bits", column.bits


def _moved(taken: Taken, block: int) -> Taken:
    return taken._replace(offset=taken.offset + block)


def block_type(size: int) -> str:
    """The type of a block that holds `size` bytes: whole fields, so that what stands behind it is
    aligned.
    """
    return f"{-(-size // FIELD_BYTES) * FIELD_BYTES}s"


def encode_header(layout: Layout, facts: dict[str, Any]) -> bytes:
    """Magic, length and JSON; `facts` holds the fields besides `v`, `devices`, `width` and
    `columns`.
    """
    text = json.dumps(
        {
            "v": VERSION,
            **facts,
            "devices": layout.devices,
            "width": layout.width,
            "columns": layout.columns,
        },
        separators=(",", ":"),
    ).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return MAGIC + struct.pack("<I4x", len(text)) + text
