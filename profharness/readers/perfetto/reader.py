"""Perfetto protobuf traces as a source: rocprofv3's .pftrace, rocprof-sys's .proto, and our own
merged.pftrace.

Times are on the file's primary clock, CLOCK_BOOTTIME for the AMD tools. rocprof-sys stamps what it
sees on the host with CLOCK_MONOTONIC under that name; where the file's own clock snapshots show
that the two differ (the machine was suspended), such records are moved. rocprofv3 shortens
dispatches of a queue that overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness.findings import Severity
from profharness.readers.bytes.proto_scan import I64, frame
from profharness.readers.left_out import left_out
from profharness.readers.perfetto import events as ev
from profharness.readers.perfetto import tables as pftrace_tables
from profharness.readers.perfetto.context import Context, Tables
from profharness.readers.perfetto.gpu import GpuTables, read_gpu
from profharness.readers.perfetto.names import read_interned
from profharness.readers.perfetto.notes import Events, read_events
from profharness.readers.perfetto.origin import Origin, clock_offset, dropped, read_origin
from profharness.readers.perfetto.packets import MISSING, PACKET_TAG, Framing, Packets, read_packets
from profharness.readers.perfetto.passes import by_pass
from profharness.readers.perfetto.slices import CALL, Slices, from_rocprof_sys, read_slices
from profharness.readers.perfetto.states import latest_of_state, states
from profharness.readers.perfetto.times import packet_times
from profharness.readers.perfetto.tracks import Tracks
from profharness.readers.perfetto.xspace import is_xspace
from profharness.trace.columns.build import text_pool
from profharness.trace.columns.column import narrow
from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import Problem, Source, Stream, Strings, Trace
from profharness.trace.wanted import Wanted

name = "perfetto"

_LEAST_SUSPEND_NS = 1_000_000  # the clocks of one snapshot are read within less
_ROCPROFV3 = "kernel_dispatch"


@dataclass(frozen=True, eq=False)
class _File:
    """One file as it was read."""

    packets: Packets
    framing: Framing
    strings: Strings
    events: Events
    slices: Slices
    origin: Origin
    moved_ns: int
    moved: int
    unrelated: int


def sniff(head: bytes, name: str) -> bool:
    """Two packets in a row, or the only one there is. An XSpace too, which begins alike: `read`
    says what it is.
    """
    if not head.startswith(bytes([PACKET_TAG])):
        return False
    if is_xspace(head, name):
        return True
    starts, _, stopped = frame(memoryview(head), PACKET_TAG)
    return len(starts) > 1 or (len(starts) == 1 and stopped == len(head)) or _is_long(head)


def _is_long(head: bytes) -> bool:
    """Whether the first packet is larger than the head: its length says so, and it begins with a
    field of a packet.
    """
    at = 1
    while at < min(len(head), 10) and head[at] & 0x80:
        at += 1
    length = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(head[1 : at + 1]))
    return length > len(head) >= 1 << 16 and at + 1 < len(head) and head[at + 1] & 7 in (0, 2)


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file. Raises InputError when it is missing or no Perfetto trace."""
    packets, framing = read_packets(path)
    strings = Strings()
    state = states(packets).number
    times = packet_times(packets, latest_of_state(state, *ev.default_clocks(packets)))
    interned = read_interned(packets, state, strings)
    events = read_events(packets, interned, text_pool(strings))
    packets.let_go()
    tracks = Tracks(packets)
    default = latest_of_state(state, *ev.default_tracks(packets))[events.packet]
    track = narrow(
        np.where(events.has_track, events.track, np.where(default != MISSING, default, 0))
    )
    at = times.ns[events.packet]
    slices = read_slices(events, at, state[events.packet], track, (strings, tracks), wanted)
    del state, default
    origin = read_origin(packets, times)
    event_times, slices, moved_ns, moved = _on_boottime(packets, events, slices, strings, at)
    tables = pftrace_tables.build(
        Context(events, slices, tracks, strings, event_times, track), ops=wanted.host
    )
    del event_times, track, at
    events = events.without_notes()
    gpu = read_gpu(packets, interned, times.ns, strings)
    packets.let_go()
    file = _File(
        packets,
        framing,
        strings,
        events,
        slices,
        origin,
        moved_ns,
        moved,
        int((times.unrelated[events.packet]).sum()),
    )
    return _trace(path, file, tables, gpu)


def _on_boottime(
    packets: Packets, events: Events, slices: Slices, strings: Strings, times: I64
) -> tuple[I64, Slices, int, int]:
    """Event times and slices with the host side of rocprof-sys on CLOCK_BOOTTIME; how far and how
    many were moved.
    """
    if not from_rocprof_sys(strings, events.category):
        return times, slices, 0, 0
    offset = clock_offset(packets)
    if abs(offset) < _LEAST_SUSPEND_NS:
        return times, slices, 0, 0
    from_device = np.array(
        [code for code in np.unique(events.category) if strings[int(code)].startswith("rocm_")],
        np.int64,
    )
    on_host = ~np.isin(events.category[slices.event], from_device)
    counted = events.type == ev.COUNTER
    start = slices.start + np.where(on_host, offset, 0)
    return (
        times + np.where(counted, offset, 0),
        replace(slices, start=start),
        offset,
        int(on_host.sum() + counted.sum()),
    )


def _trace(path: Path, file: _File, tables: Tables, gpu: GpuTables) -> Trace:
    typed = _shifted(gpu, len(tables.devices), len(tables.streams), len(tables.kernels))
    kernels, copies = concat([tables.kernels, typed.kernels]), concat([tables.copies, typed.copies])
    trace = Trace(
        sources=(_source(path, file, tables),),
        strings=file.strings,
        devices=(*tables.devices, *gpu.devices),
        streams=(*tables.streams, *typed.streams),
        kernels=kernels,
        copies=copies,
        api=tables.api,
        ops=tables.ops,
        marks=tables.marks,
        samples=tables.samples,
        counters=concat([tables.counters, typed.counters]),
    )
    trace = _linked(trace, file, gpu, (len(tables.kernels), len(tables.copies)))
    trace = tables.sensed.placed(trace, file.packets)
    if len(file.origin.passes) > 1 and len(np.unique(file.packets.machine)) == 1:
        trace = by_pass(trace, file.origin.passes) or trace
    return replace(trace, problems=tuple(_problems(path, file, trace)))


def _shifted(gpu: GpuTables, devices: int, streams: int, kernels: int) -> GpuTables:
    """The typed tables with the places that they get behind the others."""
    return replace(
        gpu,
        kernels=gpu.kernels.with_columns(
            device=gpu.kernels.device + devices, stream=gpu.kernels.stream + streams
        ),
        copies=gpu.copies.with_columns(
            device=gpu.copies.device + devices, stream=gpu.copies.stream + streams
        ),
        counters=gpu.counters.with_columns(kernel=gpu.counters.kernel + kernels),
        streams=tuple(
            Stream(stream.device + devices, stream.name, stream.pid) for stream in gpu.streams
        ),
    )


def _linked(trace: Trace, file: _File, gpu: GpuTables, first: tuple[int, int]) -> Trace:
    """Correlations of typed device work: that of the call which names its event, else the first
    event that the call names.
    """
    event, launched = file.events.submits
    if not len(event):
        return trace
    calls = file.slices.event[file.slices.kind == CALL]
    row = np.full(len(file.events), NULL, np.int64)
    row[calls] = np.arange(len(calls))
    has_call = row[event] != NULL
    event, launched = row[event[has_call]], launched[has_call]
    correlation = trace.api.correlation.copy()
    lead, first_at = np.unique(event, return_index=True)
    unnumbered = correlation[lead] == NULL
    correlation[lead[unnumbered]] = launched[first_at[unnumbered]]
    order = np.argsort(launched, kind="stable")

    def of(ids: I64) -> I64:
        at = np.searchsorted(launched[order], ids).clip(max=len(order) - 1)
        return np.where(launched[order[at]] == ids, correlation[event[order[at]]], NULL)

    kernels, copies = trace.kernels.correlation.copy(), trace.copies.correlation.copy()
    kernels[first[0] :], copies[first[1] :] = of(gpu.kernel_ids), of(gpu.copy_ids)
    return replace(
        trace,
        api=trace.api.with_columns(correlation=correlation),
        kernels=trace.kernels.with_columns(correlation=kernels),
        copies=trace.copies.with_columns(correlation=copies),
    )


def _source(path: Path, file: _File, tables: Tables) -> Source:
    pids = np.unique(np.concatenate((tables.api.pid, tables.kernels.pid, tables.ops.pid)))
    pids = pids[pids != NULL]
    return Source(
        str(path),
        name,
        file.origin.clock,
        host=file.origin.host,
        pid=int(pids[0]) if len(pids) == 1 else None,
        has_host_calls=len(tables.api) > 0,
        details=file.origin.details,
        names=tables.names,
        units=tables.units,
    )


def _problems(path: Path, file: _File, trace: Trace) -> Iterator[Problem]:
    where, slices = str(path), file.slices
    if file.framing.stopped_at < file.framing.size or file.framing.damage:
        yield Problem(
            "error",
            where,
            1,
            f"the file is cut or damaged behind {len(file.packets)} packets: "
            f"{file.framing.damage or 'no packet follows'}",
        )
    for count, sentence in dropped(file.packets):
        yield Problem("error", where, count, sentence)
    if not len(file.events) and not len(trace.kernels):
        yield Problem(
            "warning",
            where,
            1,
            "the file is complete and holds no event: the program did no work that the tool saw",
        )
    for severity, count, sentence in (*_counts(file), *_as_one(file, trace)):
        if count:
            yield Problem(severity, where, count, sentence)
    yield from left_out(where, slices.left_out, "slices")


def _counts(file: _File) -> Iterator[tuple[Severity, int, str]]:
    """Everything that is told only where there is any of it."""
    slices, framing = file.slices, file.framing
    yield (
        "error",
        len(file.packets.damaged) + framing.bad_bundles + framing.zstd_bundles,
        "packets or bundles cannot be read and were left out",
    )
    yield "warning", slices.unclosed, "slices have no end and were left out"
    yield "warning", slices.unopened, "ends of slices have no begin and were left out"
    yield (
        "warning",
        file.unrelated,
        (
            "events are on a clock that no snapshot relates to the trace's: "
            "their times are not comparable"
        ),
    )
    yield (
        "warning",
        slices.crossing,
        "slices of one track overlap: where no annotation states it, their duration is not certain",
    )
    of_rocprofv3 = file.events.category[slices.event] == file.strings.find(_ROCPROFV3)
    yield (
        "info",
        int((of_rocprofv3 & (file.strings.find(_ROCPROFV3) != NULL)).sum()),
        (
            "dispatches are of rocprofv3's Perfetto output, which cuts those that overlap on a "
            "queue: its CSV, JSON or database of the same run is exact"
        ),
    )
    yield (
        "info",
        file.moved,
        (
            f"records of the host are on CLOCK_MONOTONIC and were moved by {file.moved_ns} ns to "
            "CLOCK_BOOTTIME"
        ),
    )


def _as_one(file: _File, trace: Trace) -> Iterator[tuple[Severity, int, str]]:
    """Said where several passes cannot be told apart."""
    passes = len(file.origin.passes)
    if passes > 1 and len(trace.sources) == 1:
        yield (
            "warning",
            passes,
            (
                "passes were merged into this file: their records are read as one, "
                "so that sums count each of them"
            ),
        )
