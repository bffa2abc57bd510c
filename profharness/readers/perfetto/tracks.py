"""Tracks of a Perfetto trace: their names, processes and threads, and the units of counters
(track_descriptor.proto).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profharness.readers.bytes.proto_scan import LENGTH, VARINT, Fields, scan
from profharness.readers.perfetto.packets import TRACK_DESCRIPTOR, Packets
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64
from profharness.trace.places import MOST_NAMES, named

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_PID, _TID, _UNIT, _MULTIPLIER, _INCREMENTAL, _UNIT_NAME, _SCALE = 1, 2, 3, 4, 5, 6, 7
_UNITS = {1: "ns", 2: "count", 3: "B"}  # CounterDescriptor.Unit
_LONGEST_UNIT = 16  # characters: a longer text is no unit
_CALLED = {_PROCESS: 6, _THREAD: 5}  # process_name and thread_name
_NO_NAME = re.compile(r"thread (\d+|\(not recorded\))\Z")  # what our own writer says for none
_THREAD_NAME = re.compile(
    r"^THREAD \d+ \((\d+)\)$"
)  # rocprofv3 names a thread so where it is not the main one
_DEEPEST = 64
_MOST = 4 * MOST_NAMES


@dataclass(frozen=True)
class Track:
    """One track; `pid` and `tid` are its own, NULL where it states none. `multiplier` turns counter
    values into the unit, `scale` names the vertical scale that it shares with others.
    """

    machine: int = 0
    name: str = ""
    parent: int = 0
    pid: int = NULL
    tid: int = NULL
    is_counter: bool = False
    multiplier: int = 1
    incremental: bool = False
    scale: str = ""
    unit: str = ""


_UNDECLARED = Track()


class Tracks:
    """All declared tracks by uuid. A track that is declared again keeps what the later declaration
    leaves out.
    """

    def __init__(self, packets: Packets) -> None:
        self._known: dict[int, Track] = {}
        self._data = packets.data
        rows = packets.of_kind(TRACK_DESCRIPTOR)
        fields = packets.payload(rows)
        uuids, parents = (
            fields.last(_UUID, len(rows)).tolist(),
            fields.last(_PARENT, len(rows)).tolist(),
        )
        names = self._bytes(fields, _NAME)
        processes, threads, counters = (
            self._numbers(self._bytes(fields, number)) for number in (_PROCESS, _THREAD, _COUNTER)
        )
        called = {
            number: self._called(self._bytes(fields, number), _CALLED[number])
            for number in (_PROCESS, _THREAD)
        }
        self.names = named(
            [
                *((processes[row].get(_PID, NULL), NULL, text) for row, text in called[_PROCESS]),
                *(
                    (threads[row].get(_PID, NULL), threads[row].get(_TID, NULL), text)
                    for row, text in called[_THREAD]
                    if not _NO_NAME.match(text)
                ),
            ]
        )
        described = self._bytes(fields, _COUNTER)
        scales, units = (dict(self._called(described, number)) for number in (_SCALE, _UNIT_NAME))
        machines = packets.machine[rows].tolist()
        for row, uuid in enumerate(uuids):
            track = self._known.get(uuid, _UNDECLARED)
            process, thread = processes.get(row, {}), threads.get(row, {})
            counter = counters.get(row)
            self._known[uuid] = Track(
                machine=track.machine if track is not _UNDECLARED else machines[row],
                name=self._text(names[row]) if row in names else track.name,
                parent=parents[row] or track.parent,
                pid=thread.get(_PID, process.get(_PID, track.pid)),
                tid=thread.get(_TID, track.tid),
                is_counter=track.is_counter or counter is not None,
                multiplier=track.multiplier
                if counter is None
                else max(counter.get(_MULTIPLIER, 1), 1),
                incremental=track.incremental
                if counter is None
                else bool(counter.get(_INCREMENTAL, 0)),
                scale=scales.get(row, track.scale),
                unit=_unit_of(counter, units.get(row, "")) or track.unit,
            )

    def __getitem__(self, uuid: int) -> Track:
        return self._known.get(uuid, _UNDECLARED)

    def pid(self, uuid: int) -> int:
        """The process that a track belongs to, by itself or by what it stands under."""
        return self._pids.get(uuid, NULL)

    def tid(self, uuid: int) -> int:
        """The thread that a track belongs to."""
        return self._tids.get(uuid, NULL)

    @cached_property
    def _pids(self) -> dict[int, int]:
        return self._inherited([track.pid for track in self._known.values()])

    @cached_property
    def _tids(self) -> dict[int, int]:
        return self._inherited([_own_thread(track) for track in self._known.values()])

    @cached_property
    def _parents(self) -> I64:
        """The place of each track's parent among the tracks; NULL for none that is declared."""
        places = {uuid: place for place, uuid in enumerate(self._known)}
        parents = (track.parent for track in self._known.values())
        return np.array(
            [places.get(parent, NULL) if parent else NULL for parent in parents], np.int64
        )

    def _inherited(self, own: list[int]) -> dict[int, int]:
        """Of each track by uuid the number that it states itself, else that of the nearest track
        that it stands under and that states one; of so many above one another at most.
        """
        stated, parents = np.array(own, np.int64), self._parents
        found, above = stated.copy(), parents.copy()
        for _ in range(_DEEPEST - 1):
            seeking = np.flatnonzero((found == NULL) & (above != NULL))
            if not len(seeking):
                break
            found[seeking] = stated[above[seeking]]
            above[seeking] = parents[above[seeking]]
        return dict(zip(self._known, found.tolist(), strict=True))

    @staticmethod
    def _bytes(fields: Fields, number: int) -> dict[int, tuple[int, int]]:
        texts = fields.pick(number, LENGTH)
        return {
            row: (start, end)
            for row, start, end in zip(
                texts.row.tolist(), texts.start.tolist(), texts.end.tolist(), strict=True
            )
        }

    def _called(self, places: dict[int, tuple[int, int]], number: int) -> list[tuple[int, str]]:
        """The text of this number in the messages at these places, with the row of each."""
        rows = list(places)
        start, end = (
            np.array([place[side] for place in places.values()], np.int64) for side in (0, 1)
        )
        found = scan(self._data, start, end).pick(number, LENGTH)
        return [
            (rows[message], self._text((start, end)))
            for message, start, end in zip(
                found.row.tolist()[:_MOST], found.start.tolist(), found.end.tolist(), strict=False
            )
        ]

    def _text(self, place: tuple[int, int]) -> str:
        return self._data[slice(*place)].tobytes().decode("utf-8", "replace")

    def _numbers(self, places: dict[int, tuple[int, int]]) -> dict[int, dict[int, int]]:
        """The varints of the messages at these places, by row and number of the field."""
        rows = list(places)
        start, end = (
            np.array([place[side] for place in places.values()], np.int64) for side in (0, 1)
        )
        fields = scan(self._data, start, end)
        varints = fields.take(fields.wire == VARINT)
        found: dict[int, dict[int, int]] = {row: {} for row in rows}
        for message, number, value in zip(
            varints.row.tolist(),
            varints.number.tolist(),
            varints.value.view(np.int64).tolist(),
            strict=True,
        ):
            found[rows[message]][number] = value
        return found


def _unit_of(counter: dict[int, int] | None, name: str) -> str:
    """The unit of a counter, by its name or its number; empty where it states none."""
    stated = name.strip() or _UNITS.get((counter or {}).get(_UNIT, 0), "")
    return stated if len(stated) <= _LONGEST_UNIT and stated.isprintable() else ""


def _own_thread(track: Track) -> int:
    """The thread that a track states, as a number or in its name."""
    named = None if track.tid != NULL else _THREAD_NAME.match(track.name)
    number = int(named[1]) if named else track.tid
    return number if number < 2**63 else NULL
