"""What a Perfetto file says, by the official protos: the stack of each track replayed, names
resolved.

It knows nothing of the writer, and follows the rules of a trace processor: interned names per
sequence, an end closes the innermost begin of its track.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


@dataclass(frozen=True)
class GpuEvent:
    ts: int
    dur: int
    name: str
    machine: int
    gpu: int
    queue: str
    stage: str
    pid: int
    event_id: int
    args: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Slice:
    ts: int
    dur: int
    name: str
    track: int
    category: str
    machine: int
    notes: tuple[tuple[str, object], ...]
    submits: tuple[int, ...]
    flows: tuple[int, ...] = ()
    ends_flows: tuple[int, ...] = ()


@dataclass
class Decoded:
    packets: list[pb.TracePacket] = field(default_factory=list)
    gpu: list[GpuEvent] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    counters: list[tuple[int, int, float]] = field(default_factory=list)  # (track, ts, value)
    tracks: dict[int, pb.TrackDescriptor] = field(default_factory=dict)
    machine_of_track: dict[int, int] = field(default_factory=dict)

    def path(self, uuid: int) -> tuple[str, ...]:
        """Names from the outermost track to this one."""
        names: list[str] = []
        while uuid:
            track = self.tracks[uuid]
            names.append(track.process.process_name or track.thread.thread_name or track.name)
            uuid = track.parent_uuid
        return tuple(reversed(names))


def multiset(events: list[GpuEvent] | list[Slice]) -> Counter[tuple[int, int, str]]:
    return Counter((e.ts, e.dur, e.name) for e in events)


def decode(path: Path) -> Decoded:
    data = path.read_bytes()
    trace = pb.Trace.FromString(gzip.decompress(data) if path.suffix == ".gz" else data)
    out = Decoded(packets=list(trace.packet))
    interned: dict[tuple[int, int], _Names] = {}
    open_slices: dict[int, list[tuple[int, pb.TrackEvent, _Names, int]]] = defaultdict(list)
    for packet in trace.packet:
        key = (packet.machine_id, packet.trusted_packet_sequence_id)
        if packet.sequence_flags & 1:
            interned[key] = _Names()
        names = interned.setdefault(key, _Names())
        names.learn(packet.interned_data)
        if packet.HasField("track_descriptor"):
            uuid = packet.track_descriptor.uuid
            assert uuid not in out.tracks, "declared twice"
            out.tracks[uuid] = packet.track_descriptor
            out.machine_of_track[uuid] = packet.machine_id
        elif packet.HasField("gpu_render_stage_event"):
            out.gpu.append(_gpu_event(packet, names))
        elif packet.HasField("track_event"):
            _track_event(packet, names, open_slices, out)
    assert not any(open_slices.values()), "a begin without its end"
    return out


def submissions(event: pb.TrackEvent) -> tuple[int, ...]:
    """gpu_correlation.render_stage_submission_event_ids, which the protos of the package do not
    know.
    """
    ids: list[int] = []
    for item in unknown_fields.UnknownFieldSet(event):
        if item.field_number == 3000:
            ids += _varints(item.data)
    return tuple(ids)


class _Names:
    def __init__(self) -> None:
        self.tables: dict[str, dict[int, object]] = defaultdict(dict)

    def learn(self, data: pb.InternedData) -> None:
        for table in (
            "event_names",
            "event_categories",
            "debug_annotation_names",
            "gpu_specifications",
            "graphics_contexts",
        ):
            for item in getattr(data, table):
                self._put(
                    table,
                    item.iid,
                    item if table in {"gpu_specifications", "graphics_contexts"} else item.name,
                )
        for item in data.debug_annotation_string_values:
            self._put("strings", item.iid, item.str.decode())
        for item in unknown_fields.UnknownFieldSet(data):
            if item.field_number == 1000:
                kernel = pb.InternedComputeKernel.FromString(item.data)
                self._put("kernels", kernel.iid, kernel)
            elif item.field_number == 1001:
                arg = pb.InternedComputeArgName.FromString(item.data)
                self._put("args", arg.iid, arg.name)

    def _put(self, table: str, iid: int, value: object) -> None:
        assert iid > 0
        assert iid not in self.tables[table], f"{table} {iid} given twice"
        self.tables[table][iid] = value


def _gpu_event(packet: pb.TracePacket, names: _Names) -> GpuEvent:
    event, tables = packet.gpu_render_stage_event, names.tables
    args = [
        (tables["args"][a.name_iid], getattr(a, a.WhichOneof("value"))) for a in event.launch.args
    ]
    if event.kernel_iid:
        kernel = tables["kernels"][event.kernel_iid]
        args += [
            (tables["args"][a.name_iid], getattr(a, a.WhichOneof("value"))) for a in kernel.args
        ]
        args.append(("kernel_name", kernel.name))
    for size in ("grid_size", "workgroup_size"):
        if event.launch.HasField(size):
            dim = getattr(event.launch, size)
            args.append((size, (dim.x, dim.y, dim.z)))
    return GpuEvent(
        packet.timestamp,
        event.duration,
        str(tables["event_names"][event.name_iid]),
        packet.machine_id,
        event.gpu_id,
        tables["gpu_specifications"][event.hw_queue_iid].name,
        tables["gpu_specifications"][event.stage_iid].name,
        tables["graphics_contexts"][event.context].pid,
        event.event_id,
        tuple(sorted(args)),
    )


def _track_event(
    packet: pb.TracePacket,
    names: _Names,
    open_slices: dict[int, list[tuple[int, pb.TrackEvent, _Names, int]]],
    out: Decoded,
) -> None:
    event = packet.track_event
    assert event.track_uuid in out.tracks, "used before it was declared"
    assert out.machine_of_track[event.track_uuid] == packet.machine_id
    stack = open_slices[event.track_uuid]
    if event.type == pb.TrackEvent.TYPE_COUNTER:
        assert out.tracks[event.track_uuid].HasField("counter")
        out.counters.append((event.track_uuid, packet.timestamp, event.double_counter_value))
    elif event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
        stack.append((packet.timestamp, event, names, packet.machine_id))
    else:
        began, begin, known, machine = stack.pop()
        assert packet.timestamp >= began
        notes = []
        for note in begin.debug_annotations:
            value = (
                known.tables["strings"][note.string_value_iid]
                if note.string_value_iid
                else getattr(note, note.WhichOneof("value"))
            )
            notes.append((known.tables["debug_annotation_names"][note.name_iid], value))
        category = (
            known.tables["event_categories"][begin.category_iids[0]] if begin.category_iids else ""
        )
        out.slices.append(
            Slice(
                began,
                packet.timestamp - began,
                str(known.tables["event_names"][begin.name_iid]),
                event.track_uuid,
                str(category),
                machine,
                tuple(sorted(notes)),
                submissions(begin),
                tuple(begin.flow_ids),
                tuple(begin.terminating_flow_ids),
            )
        )


def _varints(data: object) -> list[int]:
    """Values of field 1 in a message made of varints only; accepts bytes or an UnknownFieldSet."""
    if not isinstance(data, bytes):
        return [item.data for item in data]
    values, at = [], 0
    while at < len(data):
        assert data[at] == 0x08
        value, shift, at = 0, 0, at + 1
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                break
        values.append(value)
    return values
