"""Tracks of a Perfetto trace: their names, processes and threads, and the units of counters
(track_descriptor.proto).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from profharness.readers.bytes.proto_scan import LENGTH, VARINT, Fields, scan
from profharness.readers.perfetto.packets import TRACK_DESCRIPTOR, Packets
from profharness.trace.columns.table import NULL

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_PID, _TID, _MULTIPLIER, _INCREMENTAL = 1, 2, 4, 5
_THREAD_NAME = re.compile(
    r"^THREAD \d+ \((\d+)\)$"
)  # rocprofv3 names a thread so where it is not the main one
_DEEPEST = 64


@dataclass(frozen=True)
class Track:
    """One track; `pid` and `tid` are its own, NULL where it states none. `multiplier` turns counter
    values into the unit.
    """

    machine: int = 0
    name: str = ""
    parent: int = 0
    pid: int = NULL
    tid: int = NULL
    is_counter: bool = False
    multiplier: int = 1
    incremental: bool = False


class Tracks:
    """All declared tracks by uuid. A track that is declared again keeps what the later declaration
    leaves out.
    """

    def __init__(self, packets: Packets) -> None:
        self._known: dict[int, Track] = {}
        self._packets = packets
        rows = packets.of_kind(TRACK_DESCRIPTOR)
        fields = packets.payload(rows)
        uuids, parents = (
            fields.last(_UUID, len(rows)).tolist(),
            fields.last(_PARENT, len(rows)).tolist(),
        )
        names, processes, threads, counters = (
            self._bytes(fields, number) for number in (_NAME, _PROCESS, _THREAD, _COUNTER)
        )
        machines = packets.machine[rows].tolist()
        for row, uuid in enumerate(uuids):
            track = self._known.get(uuid, Track(machine=machines[row]))
            if row in names:
                track = replace(
                    track,
                    name=packets.data[slice(*names[row])].tobytes().decode("utf-8", "replace"),
                )
            if parents[row]:
                track = replace(track, parent=parents[row])
            for place in (processes.get(row), threads.get(row)):
                if place is not None:
                    numbers = self._varints(place)
                    track = replace(
                        track,
                        pid=numbers.get(_PID, track.pid),
                        tid=numbers.get(_TID, track.tid)
                        if place == threads.get(row)
                        else track.tid,
                    )
            if row in counters:
                numbers = self._varints(counters[row])
                track = replace(
                    track,
                    is_counter=True,
                    multiplier=max(numbers.get(_MULTIPLIER, 1), 1),
                    incremental=bool(numbers.get(_INCREMENTAL, 0)),
                )
            self._known[uuid] = track

    def __getitem__(self, uuid: int) -> Track:
        return self._known.get(uuid, Track())

    def pid(self, uuid: int) -> int:
        """The process that a track belongs to, by itself or by what it stands under."""
        for _ in range(_DEEPEST):
            track = self[uuid]
            if track.pid != NULL or not track.parent:
                return track.pid
            uuid = track.parent
        return NULL

    def tid(self, uuid: int) -> int:
        """The thread that a track belongs to."""
        for _ in range(_DEEPEST):
            track = self[uuid]
            named = _THREAD_NAME.match(track.name)
            if track.tid != NULL or named or not track.parent:
                return int(named[1]) if named and track.tid == NULL else track.tid
            uuid = track.parent
        return NULL

    @staticmethod
    def _bytes(fields: Fields, number: int) -> dict[int, tuple[int, int]]:
        texts = fields.pick(number, LENGTH)
        return {
            row: (start, end)
            for row, start, end in zip(
                texts.row.tolist(), texts.start.tolist(), texts.end.tolist(), strict=True
            )
        }

    def _varints(self, place: tuple[int, int]) -> dict[int, int]:
        start, end = (np.array([edge], np.int64) for edge in place)
        fields = scan(self._packets.data, start, end)
        varints = fields.wire == VARINT
        return dict(
            zip(
                fields.number[varints].tolist(),
                fields.value[varints].view(np.int64).tolist(),
                strict=True,
            )
        )
