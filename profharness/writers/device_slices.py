"""Kernels, copies and fills as TrackEvent slices: for viewers older than v55, at the price of lanes
made here.

Arrows are flows, of which a viewer drops those whose work begins before its launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.kernel_figures import KernelFigures
from profharness.trace.model import I64, Copies, Kernels, Trace
from profharness.writers.device_work import operator_names
from profharness.writers.figure_args import NOTE
from profharness.writers.gpus import Gpus
from profharness.writers.groups import Ints, group_rows
from profharness.writers.interning import entry, intern_codes
from profharness.writers.lanes import flat_lanes, order_events
from profharness.writers.launches import Launches
from profharness.writers.output import Output
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import (
    Encoded,
    Field,
    Message,
    Ragged,
    Same,
    integers,
    interleave,
    packets,
)
from profharness.writers.protobuf.schema import (
    NEEDS_STATE,
    Annotation,
    Interned,
    Packet,
    TrackEvent,
)
from profharness.writers.slices import flow_ids
from profharness.writers.tracks import Process, Registry, child_track, state_packets, track_packet

CHUNK = 1 << 14
_KERNEL_NOTES = (
    ("device", ""),
    ("stream", ""),
    ("workgroup_count_x", "grid_size.x"),
    ("workgroup_count_y", "grid_size.y"),
    ("workgroup_count_z", "grid_size.z"),
    ("workgroup_size_x", "workgroup_size.x"),
    ("workgroup_size_y", "workgroup_size.y"),
    ("workgroup_size_z", "workgroup_size.z"),
    ("vgpr", "registers_per_thread"),
    ("lds_bytes", "shared_mem_static"),
    ("lds_dynamic_bytes", "shared_mem_dynamic"),
)
_COPY_NOTES = (("device", ""), ("stream", ""), ("bytes", "bytes"))


@dataclass(frozen=True)
class DeviceSliceWriter:
    """Writes both tables of device work, each queue of a process on lanes of its own track."""

    trace: Trace
    registry: Registry
    gpus: Gpus
    out: Output
    launches: Launches
    figures: KernelFigures | None = None

    def write_kernels(self, process: I64, queue: I64) -> None:
        """All kernels; flow numbers follow those of the file's earlier parts."""
        kernels = self.trace.kernels
        self._write(
            _Work(
                kernels,
                np.arange(len(kernels)),
                kernels.name,
                queue,
                self.launches.base + 1,
                _KERNEL_NOTES,
                operator_names(kernels, self.trace),
                figures=self.figures,
            ),
            process,
        )

    def write_copies(self, process: I64, queue: I64) -> None:
        """All copies and fills; their flow numbers follow those of the kernels."""
        copies = self.trace.copies
        names = np.where(copies.name == NULL, copies.kind, copies.name)
        first = self.launches.base + len(self.trace.kernels) + 1
        self._write(
            _Work(
                copies,
                np.arange(len(copies)),
                names,
                queue,
                first,
                _COPY_NOTES,
                operator_names(copies, self.trace),
            ),
            process,
        )

    def _write(self, work: _Work, process: I64) -> None:
        for rows in _each(process):
            self._write_process(work.take(rows), self.registry.processes[int(process[rows[0]])])

    def _write_process(self, work: _Work, process: Process) -> None:
        sequence = self.registry.sequence()
        strings = self.trace.strings
        names = intern_codes(Interned.EVENT_NAMES, work.name[work.rows], strings)
        operators = intern_codes(
            Interned.DEBUG_ANNOTATION_STRING_VALUES, work.operator[work.rows], strings
        )
        labels = [
            entry(Interned.DEBUG_ANNOTATION_NAMES, iid, label or column)
            for iid, (column, label) in enumerate((*work.notes, ("operator", "")), 1)
        ]
        interned = [*names.entries, *labels, *operators.entries]
        if work.figures is not None:
            interned += NOTE.labels()
        for packet in state_packets(sequence, process.machine, interned):
            self.out.write(packet)
        fixed = (
            wire.integer(Packet.SEQUENCE, sequence)
            + wire.integer(Packet.SEQUENCE_FLAGS, NEEDS_STATE)
            + process.machine.stamp()
        )
        for rows in _each(work.queue[work.rows]):
            part = replace(work.take(rows), operator_iid=operators.iid[rows])
            self._write_queue(part, names.iid[rows], process, (sequence, fixed))

    def _write_queue(
        self, work: _Work, names: I64, process: Process, where: tuple[int, bytes]
    ) -> None:
        """One queue at a time: what orders its events is no larger than it is."""
        sequence, fixed = where
        start, dur = work.table.start_ns[work.rows], work.table.dur_ns[work.rows]
        events = order_events(np.zeros(len(start), np.int64), start, dur)
        tracks = group_rows(flat_lanes(events))
        uuids = np.asarray(
            [self._declare(int(work.queue[work.rows[0]]), process, sequence) for _ in tracks.first],
            np.int64,
        )
        for at in range(0, len(events.span), CHUNK):
            row, begin = events.span[at : at + CHUNK], events.begin[at : at + CHUNK]
            first, last = row[begin], row[~begin]
            begins = (
                Same(wire.integer(TrackEvent.TYPE, TrackEvent.BEGIN)),
                integers(TrackEvent.TRACK_UUID, uuids[tracks.of[first]]),
                integers(TrackEvent.NAME_IID, names[first]),
                *self._details(work, first),
            )
            ends = (
                Same(wire.integer(TrackEvent.TYPE, TrackEvent.END)),
                integers(TrackEvent.TRACK_UUID, uuids[tracks.of[last]]),
            )
            # an end has none of a begin's annotations: encoded apart, it does not pay for their
            # room
            self.out.write(
                interleave(
                    begin,
                    _packets(start[last] + dur[last], fixed, ends),
                    _packets(start[first], fixed, begins),
                )
            )

    def _details(self, work: _Work, row: I64) -> Iterator[Field]:
        """Annotations and the end of the arrow of these rows."""
        queue = self.gpus.queues[int(work.queue[work.rows[0]])]
        place = {"device": queue.gpu, "stream": queue.stream}
        rows = work.rows[row]
        for iid, (column, _) in enumerate(work.notes, 1):
            values = (
                np.full(len(row), place[column])
                if column in place
                else getattr(work.table, column)[rows]
            )
            present = values >= 0
            if present.any():
                value = integers(Annotation.INT, np.where(present, values, 0))
                fields = (Same(wire.integer(Annotation.NAME_IID, iid)), value)
                yield Message(
                    TrackEvent.DEBUG_ANNOTATIONS, fields, None if present.all() else present
                )
        launched = work.operator[rows] != NULL
        if launched.any():
            label = Same(wire.integer(Annotation.NAME_IID, len(work.notes) + 1))
            value = integers(Annotation.STRING_IID, work.operator_iid[row])
            yield Message(TrackEvent.DEBUG_ANNOTATIONS, (label, value), launched)
        if work.figures is not None:
            yield from NOTE.fields(work.figures, rows)
        event = rows + work.first_event
        linked = self.launches.linked[event - self.launches.base] > 0
        if linked.any():
            flows = flow_ids(TrackEvent.TERMINATING_FLOW_IDS, event[linked])
            yield Ragged(flows.data, np.where(linked, flows.sizes[0], 0))

    def _declare(self, queue: int, process: Process, sequence: int) -> int:
        shown = self.gpus.queues[queue]
        uuid = self.registry.uuid()
        fields = child_track(uuid, process.uuid, f"GPU {shown.gpu} · {shown.name}")
        self.out.write(track_packet(sequence, process.machine, fields))
        return uuid


@dataclass(frozen=True)
class _Work:
    """Some rows of a table. `name`, `queue` and `operator` are of all its rows, `first_event` the
    flow number of its first one, `figures` are what is told of all of them; `operator_iid` of these
    rows alone.

    `notes` are (column, label) annotations.
    """

    table: Kernels | Copies
    rows: I64
    name: Ints
    queue: I64
    first_event: int
    notes: tuple[tuple[str, str], ...]
    operator: Ints
    operator_iid: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    figures: KernelFigures | None = None

    def take(self, rows: I64) -> _Work:
        return replace(self, rows=self.rows[rows])


def _each(key: I64) -> Iterator[I64]:
    """Positions of each distinct value."""
    groups = group_rows(key)
    order = np.argsort(groups.of, kind="stable")
    yield from np.split(order, np.cumsum(groups.sizes())[:-1]) if len(groups) else ()


def _packets(when: I64, fixed: bytes, event: Sequence[Field]) -> Encoded:
    return packets(
        (integers(Packet.TIMESTAMP, when), Same(fixed), Message(Packet.TRACK_EVENT, event)),
        len(when),
    )
