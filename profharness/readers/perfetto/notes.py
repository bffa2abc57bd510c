"""Track events of a Perfetto trace with everything that a record needs: names, annotations, counter
values.

Field numbers are those of track_event.proto and debug_annotation.proto (google/perfetto v58).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.proto_scan import FIXED64, I64, LENGTH, VARINT, Fields, Mask, scan
from profharness.readers.perfetto.events import CATEGORIES, NAMES, NOTE_NAMES, TEXTS
from profharness.readers.perfetto.names import Interned, text_codes, texts
from profharness.readers.perfetto.packets import TRACK_EVENT, Packets
from profharness.trace.columns.build import Pool
from profharness.trace.columns.column import gathered, narrow
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64

_CHUNK = 1 << 15
_CATEGORY, _NOTES, _TYPE, _NAME_IID, _TRACK, _COUNTER, _DOUBLE_COUNTER = 3, 4, 9, 10, 11, 30, 44
_CATEGORY_TEXT, _NAME_TEXT, _LINKED = 22, 23, 3000
_NOTE_IID, _BOOL, _UNSIGNED, _INTEGER, _DOUBLE, _STRING, _POINTER, _NOTE_NAME, _STRING_IID = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    10,
    17,
)


@dataclass(frozen=True, eq=False)
class Notes:
    """Annotations: the event, the name, and the value as integer, number or text (NULL, NaN, NULL
    where it is another).
    """

    event: I64
    name: I64
    integer: I64
    figure: F64
    text: I64

    def integers(self, names: Sequence[int], events: int) -> I64:
        """Per event the integer of the first of these names that it has; NULL for none."""
        out = np.full(events, NULL, np.int64)
        for name in reversed(names):
            chosen = (self.name == name) & (self.integer != NULL)
            out[self.event[chosen]] = self.integer[chosen]
        return out

    def texts(self, names: Sequence[int], events: int) -> I64:
        """Per event the text of the first of these names that it has; NULL for none."""
        out = np.full(events, NULL, np.int64)
        for name in reversed(names):
            chosen = (self.name == name) & (self.text != NULL)
            out[self.event[chosen]] = self.text[chosen]
        return out


@dataclass(frozen=True, eq=False)
class Events:
    """One row per track event. Names and categories are codes of the strings; `track` is 0 where
    the event names none.

    `submits` are (event, id of a GPU event that it launched).
    """

    packet: I64
    type: I64
    track: I64
    has_track: Mask
    name: I64
    category: I64
    value: F64
    notes: Notes
    submits: tuple[I64, I64]

    def __len__(self) -> int:
        return len(self.packet)

    def without_notes(self) -> Events:
        """What is needed once the annotations are in tables: they are most of it."""
        none = np.zeros(0, np.int64)
        return replace(self, notes=Notes(none, none, none, np.zeros(0), none))


def read_events(packets: Packets, interned: Interned, pool: Pool[bytes]) -> Events:
    """All track events of a file."""
    rows = packets.of_kind(TRACK_EVENT)
    plain = ("packet", "type", "track", "has_track", "name", "category", "value")
    noted = [f.name for f in fields(Notes)]
    blocks: dict[str, list[npt.NDArray[Any]]] = {
        name: [] for name in (*plain, *(f"note {name}" for name in noted), "from", "to")
    }
    for at in range(0, max(len(rows), 1), _CHUNK):
        part = _chunk(packets, interned, pool, rows[at : at + _CHUNK], at)
        columns = {
            **{name: getattr(part, name) for name in plain},
            **{f"note {name}": getattr(part.notes, name) for name in noted},
            "from": part.submits[0],
            "to": part.submits[1],
        }
        for name, block in columns.items():
            blocks[name].append(narrow(block))
    notes = Notes(**{name: gathered(blocks[f"note {name}"]) for name in noted})
    return Events(
        notes=notes,
        submits=(gathered(blocks["from"]), gathered(blocks["to"])),
        **{name: gathered(blocks[name]) for name in plain},
    )


def _chunk(packets: Packets, interned: Interned, pool: Pool[bytes], rows: I64, at: int) -> Events:
    parsed = packets.payload(rows)
    count = len(rows)
    name = texts(packets.data, parsed.pick(_NAME_TEXT, LENGTH), count, pool)
    name = np.where(name != NULL, name, interned.names(rows, NAMES, parsed.last(_NAME_IID, count)))
    category = texts(packets.data, parsed.pick(_CATEGORY_TEXT, LENGTH), count, pool)
    category = np.where(
        category != NULL, category, interned.names(rows, CATEGORIES, parsed.last(_CATEGORY, count))
    )
    value = parsed.last(_COUNTER, count).astype(np.float64)
    doubles = parsed.pick(_DOUBLE_COUNTER, FIXED64)
    value[doubles.row] = doubles.value.view(np.float64)
    linked = parsed.pick(_LINKED, LENGTH)
    ids = scan(packets.data, linked.start, linked.end).pick(1, VARINT)
    return Events(
        packet=rows,
        type=parsed.last(_TYPE, count),
        track=parsed.last(_TRACK, count),
        has_track=parsed.has(_TRACK, count),
        name=name,
        category=category,
        value=value,
        notes=_notes(packets, interned, pool, parsed.pick(_NOTES, LENGTH), (rows, at)),
        submits=(linked.row[ids.row] + at, ids.value.view(np.int64)),
    )


def _notes(
    packets: Packets, interned: Interned, pool: Pool[bytes], given: Fields, place: tuple[I64, int]
) -> Notes:
    rows, at = place
    inner = scan(packets.data, given.start, given.end)
    count, packet = len(given.row), rows[given.row]
    name = texts(packets.data, inner.pick(_NOTE_NAME, LENGTH), count, pool)
    name = np.where(
        name != NULL, name, interned.names(packet, NOTE_NAMES, inner.last(_NOTE_IID, count))
    )
    integer, figure = np.full(count, NULL, np.int64), np.full(count, np.nan)
    for number in (_BOOL, _UNSIGNED, _INTEGER, _POINTER):
        varints = inner.pick(number, VARINT)
        integer[varints.row] = varints.value.view(np.int64)
        figure[varints.row] = integer[varints.row]
    doubles = inner.pick(_DOUBLE, FIXED64)
    figure[doubles.row] = doubles.value.view(np.float64)
    strings = inner.pick(_STRING, LENGTH)
    text = np.full(count, NULL, np.int64)
    text[strings.row] = text_codes(packets.data, strings, pool)
    shared = inner.pick(_STRING_IID, VARINT)
    text[shared.row] = interned.names(packet[shared.row], TEXTS, shared.value.view(np.int64))
    return Notes(given.row + at, name, integer, figure, text)
