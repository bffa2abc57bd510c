"""Host spans as TrackEvent slices: begins and ends in the order that a track's stack needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from profharness.trace.model import I64, Trace
from profharness.units import format_ns
from profharness.writers.annotations import Texts, collect_texts, label_entries, notes
from profharness.writers.colours import Colours
from profharness.writers.groups import Ints, group_rows
from profharness.writers.interning import intern_codes
from profharness.writers.launches import Launches
from profharness.writers.options import GpuRepresentation
from profharness.writers.output import Output
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import (
    Encoded,
    Field,
    Message,
    Ragged,
    Same,
    Varint,
    encode,
    integers,
    interleave,
    packets,
)
from profharness.writers.protobuf.schema import NEEDS_STATE, Context, Interned, Packet, TrackEvent
from profharness.writers.protobuf.varints import U8, Mask
from profharness.writers.spans import API, BENCHMARK_KINDS, Laned
from profharness.writers.tracks import Process, Registry, child_track, state_packets, track_packet

CHUNK = 1 << 14
_WIDE = (
    8  # a call that launches more than this is encoded apart, so that it does not widen all rows
)
_WIDE_SLOTS = 1 << 22
_API_OF_DOMAIN = {
    "hip": Context.HIP,
    "hsa": Context.HIP,
    "cuda": Context.CUDA,
    "cuda_driver": Context.CUDA,
}
_BENCHMARK = "Benchmark"
_BENCHMARK_TRACKS = {
    "point": "points",
    "warmup": "warm-up trials",
    "trial": "trials",
    "step": "steps",
    "phase": "phases",
    "request": "requests",
    "execution": "executions",
    "range": "ranges",
    "marker": "markers",
    "path": "critical path",
}


# tracks of one process: (position of the track, uuid, TrackDescriptor fields), parents first
Declare = Callable[[Laned, Process, I64], Iterator[tuple[int, int, bytes]]]


@dataclass(frozen=True)
class SliceWriter:
    """Writes laned spans; `launches` gives the arrows from host calls to device work."""

    trace: Trace
    registry: Registry
    out: Output
    launches: Launches
    gpu_repr: GpuRepresentation
    colours: Colours

    def write_threads(self, laned: Laned) -> None:
        """Spans of threads; spans that cross others of their thread go to tracks beside it."""
        self._write(laned, self._thread_tracks)

    def write_benchmark(self, laned: Laned) -> None:
        """Points, trials, steps and requests."""
        self._write(laned, self._benchmark_tracks)

    def write_sampled(self, laned: Laned, widths: Mapping[tuple[int, int], int]) -> None:
        """Lines of Python as samples saw them: one track for each thread, which says how far apart
        the samples are.
        """
        self._write(laned, partial(self._sampled_tracks, widths))

    def _write(self, laned: Laned, declare: Declare) -> None:
        """One sequence per process; events come sorted by process."""
        spans = laned.spans
        by_process = np.argsort(spans.process, kind="stable").astype(np.int32)
        at = np.empty(len(spans), np.int32)
        uuids = np.zeros(len(laned.tracks), np.int64)
        for rows in _segments(spans.process[by_process]):
            mine = by_process[rows]
            at[mine] = np.arange(len(mine), dtype=np.int32)
            process = self.registry.processes[int(spans.process[mine[0]])]
            slices = self._begin(laned, process, mine, at)
            for track, uuid, fields in declare(laned, process, np.unique(laned.tracks.of[mine])):
                uuids[track] = uuid
                self.out.write(track_packet(slices.sequence, process.machine, fields))
            for first in range(2 * rows.start, 2 * rows.stop, CHUNK):
                events = slice(first, min(first + CHUNK, 2 * rows.stop))
                self._write_chunk(
                    slices, uuids, laned.events.span[events], laned.events.begin[events]
                )

    def _begin(self, laned: Laned, process: Process, mine: Ints, at: Ints) -> _Slices:
        """Open a sequence and write its interned names."""
        sequence = self.registry.sequence()
        spans = laned.spans if len(mine) == len(laned.spans) else laned.spans.take(mine)
        names = intern_codes(Interned.EVENT_NAMES, spans.name, spans.strings)
        categories = intern_codes(Interned.EVENT_CATEGORIES, spans.category, spans.strings)
        texts = collect_texts(self.trace, spans)
        interned = [*names.entries, *categories.entries, *label_entries(), *texts.entries]
        for packet in state_packets(sequence, process.machine, interned):
            self.out.write(packet)
        return _Slices(
            laned,
            process,
            sequence,
            names.iid.astype(np.int32),
            categories.iid.astype(np.int32),
            texts,
            at,
            self.colours.of(spans),
        )

    def _write_chunk(self, slices: _Slices, uuids: I64, span: Ints, begin: Mask) -> None:
        calls = begin & (slices.laned.spans.table[span] == API)
        counts = np.zeros(len(span), np.int64)
        counts[calls] = self.launches.counts[slices.laned.spans.row[span[calls]]]
        wide = counts > _WIDE
        narrow = self._encode(slices, uuids, span[~wide], begin[~wide], counts[~wide])
        if not wide.any():
            self.out.write(narrow.data)
            return
        pieces = max(int(counts[wide].max()) * int(np.count_nonzero(wide)) * 10 // _WIDE_SLOTS, 1)
        parts = [
            self._encode(slices, uuids, rows, np.ones(len(rows), np.bool_), counts[wide][at])
            for at in np.array_split(np.arange(np.count_nonzero(wide)), pieces)
            if len(rows := span[wide][at])
        ]
        joined = Encoded(
            np.concatenate([p.data for p in parts]), np.concatenate([p.sizes for p in parts])
        )
        self.out.write(interleave(wide, narrow, joined))

    def _encode(self, slices: _Slices, uuids: I64, span: Ints, begin: Mask, counts: I64) -> Encoded:
        fields = [*slices.fields(self.trace, uuids, span, begin)]
        if counts.any():
            fields += self._links(slices.laned.spans.row[span], counts)
        spans = slices.laned.spans
        when = np.where(begin, spans.start[span], spans.start[span] + spans.dur[span])
        fixed = (
            wire.integer(Packet.SEQUENCE, slices.sequence)
            + wire.integer(Packet.SEQUENCE_FLAGS, NEEDS_STATE)
            + slices.process.machine.stamp()
        )
        return packets(
            (integers(Packet.TIMESTAMP, when), Same(fixed), Message(Packet.TRACK_EVENT, fields)),
            len(span),
        )

    def _links(self, row: Ints, counts: I64) -> Iterator[Field]:
        """Numbers of the device records that each call launched."""
        first = self.launches.offsets[np.where(counts > 0, row, 0)]
        offset = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        events = self.launches.events[offset]
        if self.gpu_repr == "track-event":
            yield Ragged(flow_ids(TrackEvent.FLOW_IDS, events).data, counts * _FLOW_SIZE)
            return
        ids = encode((Varint(TrackEvent.SUBMISSION_EVENT_IDS, events),), len(events))
        total = np.concatenate(([0], np.cumsum(ids.sizes)))
        upto = np.cumsum(counts)
        yield Message(
            TrackEvent.GPU_CORRELATION,
            (Ragged(ids.data, total[upto] - total[upto - counts]),),
            counts > 0,
        )
        api = _context_api(self.trace, np.where(counts > 0, row, 0))
        yield Varint(TrackEvent.GPU_API, api, (counts > 0) & (api > 0))

    def _thread_tracks(
        self, laned: Laned, process: Process, used: I64
    ) -> Iterator[tuple[int, int, bytes]]:
        for track in used:
            span = laned.tracks.first[track]
            tid = int(laned.spans.place[span])
            if laned.lane[span] == 0:
                uuid, fields = self.registry.thread_descriptor(process, tid)
                yield int(track), uuid, fields
            else:
                uuid = self.registry.uuid()
                yield (
                    int(track),
                    uuid,
                    child_track(uuid, process.uuid, f"thread {tid}: spans that cross"),
                )

    def _sampled_tracks(
        self, widths: Mapping[tuple[int, int], int], laned: Laned, process: Process, used: I64
    ) -> Iterator[tuple[int, int, bytes]]:
        for track in used:
            span = laned.tracks.first[track]
            tid = int(laned.spans.place[span])
            width = format_ns(widths[int(laned.spans.process[span]), tid])
            uuid = self.registry.uuid()
            of = "" if tid == process.key.pid else f" of thread {tid}"
            name = f"Python lines{of} (sampled, a step is {width})"
            yield int(track), uuid, child_track(uuid, process.uuid, name)

    def _benchmark_tracks(
        self, laned: Laned, process: Process, used: I64
    ) -> Iterator[tuple[int, int, bytes]]:
        parent = self.registry.uuid()
        yield int(used[0]), parent, child_track(parent, process.uuid, _BENCHMARK, ordered=True)
        for track in used:
            kind = int(laned.spans.place[laned.tracks.first[track]])
            uuid = self.registry.uuid()
            name = _BENCHMARK_TRACKS[BENCHMARK_KINDS[kind]]
            yield int(track), uuid, child_track(uuid, parent, name, kind)


@dataclass(frozen=True)
class _Slices:
    """One process's spans with their interned numbers; `at` maps a span to its place among them."""

    laned: Laned
    process: Process
    sequence: int
    name: Ints
    category: Ints
    texts: Texts
    at: Ints
    colour: Ints

    def fields(self, trace: Trace, uuids: I64, span: Ints, begin: Mask) -> Iterator[Field]:
        here = self.at[span]
        spans = self.laned.spans
        yield Varint(TrackEvent.TYPE, np.where(begin, TrackEvent.BEGIN, TrackEvent.END))
        yield integers(TrackEvent.TRACK_UUID, uuids[self.laned.tracks.of[span]])
        yield integers(TrackEvent.NAME_IID, self.name[here], begin)
        yield integers(TrackEvent.CATEGORY_IIDS, self.category[here], begin)
        colour = self.colour[here]
        if (coloured := begin & (colour > 0)).any():
            yield Varint(TrackEvent.CORRELATION_ID, colour, coloured)
        yield from notes(trace, spans.table[span], spans.row[span], begin, self.texts)


_FLOW_SIZE = len(wire.tag(TrackEvent.FLOW_IDS, wire.I64BIT)) + 8


def flow_ids(number: int, events: I64) -> Encoded:
    """A fixed64 flow id field per event."""
    head = np.frombuffer(wire.tag(number, wire.I64BIT), np.uint8)
    data: U8 = np.empty((len(events), len(head) + 8), np.uint8)
    data[:, : len(head)] = head
    data[:, len(head) :] = events.astype("<u8").view(np.uint8).reshape(-1, 8)
    return Encoded(data.reshape(-1), np.full(len(events), len(head) + 8))


def _context_api(trace: Trace, row: Ints) -> I64:
    domains = trace.api.domain[row]
    groups = group_rows(domains)
    names: Sequence[str] = [trace.strings[int(code)] for code in domains[groups.first]]
    return np.asarray([_API_OF_DOMAIN.get(name, Context.UNDEFINED) for name in names], np.int64)[
        groups.of
    ]


def _segments(ordered: Ints) -> Iterator[slice]:
    """Runs of equal values."""
    ends = np.flatnonzero(np.diff(ordered)) + 1
    for lo, hi in zip([0, *ends.tolist()], [*ends.tolist(), len(ordered)], strict=True):
        if lo < hi:
            yield slice(lo, hi)
