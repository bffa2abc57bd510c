"""Kernels, copies and fills as TrackEvent slices: for viewers older than v55, at the price of lanes made here.

Arrows are flows, of which a viewer drops those whose work begins before its launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profharness.trace.model import I64, NULL, Copies, Kernels, Trace
from profharness.writers import wire
from profharness.writers.gpus import Gpus
from profharness.writers.groups import group_rows
from profharness.writers.interning import entry, intern_codes
from profharness.writers.lanes import flat_lanes, order_events
from profharness.writers.launches import Launches
from profharness.writers.output import Output
from profharness.writers.proto_columns import Field, Mask, Message, Ragged, Same, Varint, integers, packets
from profharness.writers.schema import NEEDS_STATE, Annotation, Interned, Packet, TrackEvent
from profharness.writers.slices import flow_ids
from profharness.writers.tracks import Process, Registry, child_track, state_packets, track_packet

CHUNK = 1 << 14
_KERNEL_NOTES = (
    ("device", ""), ("stream", ""), ("workgroup_count_x", "grid_size.x"), ("workgroup_count_y", "grid_size.y"),
    ("workgroup_count_z", "grid_size.z"), ("workgroup_size_x", "workgroup_size.x"), ("workgroup_size_y", "workgroup_size.y"),
    ("workgroup_size_z", "workgroup_size.z"), ("vgpr", "registers_per_thread"), ("lds_bytes", "shared_mem_static"),
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

    def write_kernels(self, process: I64, queue: I64) -> None:
        """All kernels; flow numbers follow those of the file's earlier parts."""
        names = self.trace.kernels.name.astype(np.int64)
        self._write(_Work(self.trace.kernels, names, np.arange(len(names)) + self.launches.base + 1, queue, _KERNEL_NOTES), process)

    def write_copies(self, process: I64, queue: I64) -> None:
        """All copies and fills; their flow numbers follow those of the kernels."""
        copies = self.trace.copies
        names = np.where(copies.name == NULL, copies.kind, copies.name).astype(np.int64)
        self._write(_Work(copies, names, np.arange(len(copies)) + self.launches.base + len(self.trace.kernels) + 1, queue, _COPY_NOTES), process)

    def _write(self, work: _Work, process: I64) -> None:
        groups = group_rows(process)
        order = np.argsort(groups.of, kind="stable")
        for rows in np.split(order, np.cumsum(groups.sizes())[:-1]) if len(groups) else ():
            self._write_process(work.take(rows), self.registry.processes[int(process[rows[0]])])

    def _write_process(self, work: _Work, process: Process) -> None:
        sequence = self.registry.sequence()
        names = intern_codes(Interned.EVENT_NAMES, work.name, self.trace.strings)
        labels = [entry(Interned.DEBUG_ANNOTATION_NAMES, iid, label or column) for iid, (column, label) in enumerate(work.notes, 1)]
        for packet in state_packets(sequence, process.machine, [*names.entries, *labels]):
            self.out.write(packet)
        table = work.table
        events = order_events(group_rows(work.queue).of, table.start_ns, table.dur_ns)
        tracks = group_rows(work.queue, flat_lanes(events))
        uuids = np.asarray([self._declare(int(work.queue[row]), process, sequence) for row in tracks.first], np.int64)
        fixed = (wire.integer(Packet.SEQUENCE, sequence) + wire.integer(Packet.SEQUENCE_FLAGS, NEEDS_STATE)
                 + process.machine.stamp())
        for at in range(0, len(events.span), CHUNK):
            row, begin = events.span[at : at + CHUNK], events.begin[at : at + CHUNK]
            when = table.start_ns[row] + np.where(begin, 0, table.dur_ns[row])
            event = (Varint(TrackEvent.TYPE, np.where(begin, TrackEvent.BEGIN, TrackEvent.END)),
                     integers(TrackEvent.TRACK_UUID, uuids[tracks.of[row]]),
                     integers(TrackEvent.NAME_IID, names.iid[row], begin), *self._details(work, row, begin))
            fields = (integers(Packet.TIMESTAMP, when), Same(fixed), Message(Packet.TRACK_EVENT, event))
            self.out.write(packets(fields, len(row)).data)

    def _details(self, work: _Work, row: I64, begin: Mask) -> Iterator[Field]:
        queues = self.gpus.queues
        place = {"device": np.asarray([q.gpu for q in queues]), "stream": np.asarray([q.stream for q in queues])}
        for iid, (column, _) in enumerate(work.notes, 1):
            values = place[column][work.queue[row]] if column in place else getattr(work.table, column)[row]
            present = begin & (values >= 0)
            if present.any():
                value = integers(Annotation.INT, np.where(present, values, 0))
                yield Message(TrackEvent.DEBUG_ANNOTATIONS, (Same(wire.integer(Annotation.NAME_IID, iid)), value), present)
        linked = begin & (self.launches.linked[work.event[row] - self.launches.base] > 0)
        if linked.any():
            flows = flow_ids(TrackEvent.TERMINATING_FLOW_IDS, work.event[row[linked]])
            yield Ragged(flows.data, np.where(linked, flows.sizes[0], 0))

    def _declare(self, queue: int, process: Process, sequence: int) -> int:
        shown = self.gpus.queues[queue]
        uuid = self.registry.uuid()
        fields = child_track(uuid, process.uuid, f"GPU {shown.gpu} · {shown.name}")
        self.out.write(track_packet(sequence, process.machine, fields))
        return uuid


@dataclass(frozen=True)
class _Work:
    """Rows of one table with name code, flow number and queue; `notes` are (column, label) annotations."""

    table: Kernels | Copies
    name: I64
    event: I64
    queue: I64
    notes: tuple[tuple[str, str], ...]

    def take(self, rows: I64) -> _Work:
        return _Work(self.table.take(rows), self.name[rows], self.event[rows], self.queue[rows], self.notes)
