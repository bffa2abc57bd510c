"""Columns of the events in a Perfetto trace: track events, GPU events, and the interned entries
they use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from profharness.readers.bytes.proto_scan import I64, LENGTH, VARINT, Fields, Mask, scan
from profharness.readers.perfetto.packets import (
    GPU_EVENT,
    MISSING,
    TRACK_DESCRIPTOR,
    TRACK_EVENT,
    Packets,
)

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
_CHUNK = 1 << 16
# interned tables: the number of the InternedData field
CATEGORIES, NAMES, NOTE_NAMES, CONTEXTS, SPECIFICATIONS, TEXTS = 1, 2, 3, 23, 24, 29
KERNELS, ARG_NAMES = 1000, 1001
TABLES = (CATEGORIES, NAMES, NOTE_NAMES, CONTEXTS, SPECIFICATIONS, TEXTS, KERNELS, ARG_NAMES)


@dataclass(frozen=True)
class Uses:
    """Interned numbers, used or given: in which packet, of which table."""

    packet: I64
    table: I64
    iid: I64


@dataclass(frozen=True)
class TrackEvents:
    """One row per TrackEvent. `track` is 0 where the event and its sequence's defaults name none.

    `name` is the interned number of a name. `submits` are arrows to
    GPU events: (packet, event id). `uses` come in parts, because there are many.
    """

    packet: I64
    type: I64
    track: I64
    has_track: Mask
    name: I64
    uses: tuple[Uses, ...]
    submits: tuple[I64, I64]


@dataclass(frozen=True)
class GpuEvents:
    """One row per GpuRenderStageEvent; `waits` are (packet, event id)."""

    packet: I64
    event_id: I64
    has_id: Mask
    has_queue: Mask
    duration: I64
    uses: tuple[Uses, ...]
    waits: tuple[I64, I64]
    typed: bool


@dataclass(frozen=True)
class Tracks:
    """Declared tracks."""

    packet: I64
    uuid: I64
    parent: I64
    counter: Mask


def track_events(packets: Packets) -> TrackEvents:
    """All TrackEvents (track_event.proto)."""
    parts = [_track_events(packets, rows) for rows in _chunked(packets.of_kind(TRACK_EVENT))]
    columns = ("packet", "type", "track", "has_track", "name")
    return TrackEvents(
        **{c: np.concatenate([getattr(p, c) for p in parts]) for c in columns},
        uses=tuple(p.uses[0] for p in parts),
        submits=_pairs(p.submits for p in parts),
    )


def gpu_events(packets: Packets) -> GpuEvents:
    """All GpuRenderStageEvents (gpu_render_stage_event.proto)."""
    parts = [_gpu_events(packets, rows) for rows in _chunked(packets.of_kind(GPU_EVENT))]
    columns = ("packet", "event_id", "has_id", "has_queue", "duration")
    return GpuEvents(
        **{c: np.concatenate([getattr(p, c) for p in parts]) for c in columns},
        uses=tuple(p.uses[0] for p in parts),
        waits=_pairs(p.waits for p in parts),
        typed=any(p.typed for p in parts),
    )


def declared_tracks(packets: Packets) -> Tracks:
    """All TrackDescriptors; a parent of 0 is none."""
    rows = packets.of_kind(TRACK_DESCRIPTOR)
    fields = packets.payload(rows)
    return Tracks(
        rows, fields.last(1, len(rows)), fields.last(5, len(rows)), fields.has(8, len(rows))
    )


def interned_entries(packets: Packets) -> Uses:
    """Numbers of all interned entries of the tables that events refer to."""
    rows = np.flatnonzero(packets.interned_end > packets.interned_start)
    fields = scan(packets.data, packets.interned_start[rows], packets.interned_end[rows])
    entries = fields.take((fields.wire == LENGTH) & np.isin(fields.number, TABLES))
    iids = scan(packets.data, entries.start, entries.end).last(1, len(entries.row))
    return Uses(rows[entries.row], entries.number, iids)


def default_tracks(packets: Packets) -> tuple[I64, I64]:
    """(packet, track uuid) of sequence defaults, and with uuid MISSING where defaults name no
    track.
    """
    rows = np.flatnonzero(packets.defaults_end > packets.defaults_start)
    fields = scan(packets.data, packets.defaults_start[rows], packets.defaults_end[rows])
    nested = fields.pick(11, LENGTH)
    uuid = np.full(len(rows), MISSING, np.int64)
    uuid[nested.row] = scan(packets.data, nested.start, nested.end).last(
        11, len(nested.row), MISSING
    )
    return rows, uuid


def default_clocks(packets: Packets) -> tuple[I64, I64]:
    """(packet, clock id) of sequence defaults that name a clock."""
    rows = np.flatnonzero(packets.defaults_end > packets.defaults_start)
    clock = scan(packets.data, packets.defaults_start[rows], packets.defaults_end[rows]).last(
        58, len(rows), MISSING
    )
    return rows[clock != MISSING], clock[clock != MISSING]


def concat_uses(uses: Iterable[Uses]) -> Uses:
    """Several sets of uses as one."""
    parts = list(uses)
    return Uses(
        *(
            np.concatenate([getattr(p, c) for p in parts]).astype(np.int64)
            for c in ("packet", "table", "iid")
        )
    )


def _track_events(packets: Packets, rows: I64) -> TrackEvents:
    fields = packets.payload(rows)
    count = len(rows)
    notes = fields.pick(4, LENGTH)
    inner = scan(packets.data, notes.start, notes.end)
    uses = concat_uses(
        (
            _uses(fields, 10, NAMES, rows),
            _uses(fields, 3, CATEGORIES, rows),
            _uses(inner, 1, NOTE_NAMES, rows[notes.row]),
            _uses(inner, 17, TEXTS, rows[notes.row]),
        )
    )
    linked = fields.pick(3000, LENGTH)
    ids = scan(packets.data, linked.start, linked.end).pick(1, VARINT)
    return TrackEvents(
        packet=rows,
        type=fields.last(9, count),
        track=fields.last(11, count),
        has_track=fields.has(11, count),
        name=fields.last(10, count),
        uses=(uses,),
        submits=(rows[linked.row[ids.row]], ids.value.view(np.int64)),
    )


def _gpu_events(packets: Packets, rows: I64) -> GpuEvents:
    fields = packets.payload(rows)
    count = len(rows)
    launches = fields.pick(21, LENGTH)
    args = scan(packets.data, launches.start, launches.end).pick(3, LENGTH)
    inner = scan(packets.data, args.start, args.end)
    owner = rows[launches.row[args.row]]
    uses = concat_uses(
        (
            _uses(fields, 20, NAMES, rows),
            _uses(fields, 13, SPECIFICATIONS, rows),
            _uses(fields, 14, SPECIFICATIONS, rows),
            _uses(fields, 5, CONTEXTS, rows),
            _uses(fields, 19, KERNELS, rows),
            _uses(inner, 1, ARG_NAMES, owner),
            _uses(inner, 7, TEXTS, owner),
        )
    )
    waits = fields.pick(18, VARINT)
    return GpuEvents(
        packet=rows,
        event_id=fields.last(1, count),
        has_id=fields.has(1, count),
        has_queue=fields.has(13, count) | fields.has(3, count),
        duration=fields.last(2, count),
        uses=(uses,),
        waits=(rows[waits.row], waits.value.view(np.int64)),
        typed=bool(len(launches.row) or fields.has(19, count).any()),
    )


def _uses(fields: Fields, number: int, table: int, packet: I64) -> Uses:
    used = fields.pick(number, VARINT)
    return Uses(packet[used.row], np.full(len(used.row), table), used.value.view(np.int64))


def _pairs(pairs: Iterable[tuple[I64, I64]]) -> tuple[I64, I64]:
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _chunked(rows: I64) -> Iterator[I64]:
    """At least one chunk, so that there is something to join."""
    yield rows[:_CHUNK]
    for at in range(_CHUNK, len(rows), _CHUNK):
        yield rows[at : at + _CHUNK]
