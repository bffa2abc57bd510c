"""The rules that a Perfetto protobuf trace must keep, applied to a file of any writer.

Most mistakes in such a file raise no error in a viewer: events vanish, durations change. The rules
are listed in `pftrace_faults`. Pure Python and NumPy: no schema, no binary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profharness.readers.bytes.proto_scan import I64
from profharness.readers.perfetto import events as ev
from profharness.readers.perfetto.faults import Check, Fault, Holdings
from profharness.readers.perfetto.packets import (
    GPU_EVENT,
    MISSING,
    TRACK_EVENT,
    Framing,
    Packets,
    read_packets,
)
from profharness.readers.perfetto.stacks import Replay, StackEvents, only_stacked, replay
from profharness.readers.perfetto.states import (
    States,
    latest_of_state,
    sequence_keys,
    states,
    unresolved,
)
from profharness.readers.perfetto.times import Times, packet_times

Broken = tuple[str, I64]  # a rule and the packet of each offence
_NEEDS_STATE = 2


@dataclass(frozen=True)
class _Trace:
    """Everything that the rules look at."""

    packets: Packets
    framing: Framing
    state: States
    times: Times
    events: ev.TrackEvents
    gpu: ev.GpuEvents
    tracks: ev.Tracks
    track: I64  # per track event: its own track, else its sequence's; 0 for none
    stacks: Replay


def check_file(path: Path) -> Check:
    """Check one file, plain or gzipped. Raises InputError when it is missing, empty or no Perfetto
    trace.
    """
    packets, framing = read_packets(path)
    trace = _read(packets, framing)
    broken = [
        *_framing_rules(trace),
        *_state_rules(trace),
        *_track_rules(trace),
        *_stack_rules(trace),
        *_gpu_rules(trace),
        *_clock_rules(trace),
    ]
    faults = tuple(
        Fault(rule, len(rows), int(rows.min()), _offset(packets, int(rows.min()), framing))
        for rule, rows in broken
        if len(rows)
    )
    return Check(_holdings(trace), faults, tuple(_notes(trace)))


def _read(packets: Packets, framing: Framing) -> _Trace:
    state = states(packets)
    times = packet_times(packets, latest_of_state(state.number, *ev.default_clocks(packets)))
    events = ev.track_events(packets)
    default = latest_of_state(state.number, *ev.default_tracks(packets))[events.packet]
    track = np.where(events.has_track, events.track, np.where(default != MISSING, default, 0))
    # events without any track belong to the thread of their sequence
    place = np.where(track == 0, -1 - sequence_keys(packets)[events.packet], track)
    _, at_place = np.unique(place, return_inverse=True)
    number = packets.machine[events.packet] * (len(place) + 1) + at_place
    stacks = replay(
        only_stacked(
            StackEvents(
                number,
                times.ns[events.packet],
                events.packet,
                events.type,
                events.name,
                state.number[events.packet],
            )
        )
    )
    return _Trace(
        packets,
        framing,
        state,
        times,
        events,
        ev.gpu_events(packets),
        ev.declared_tracks(packets),
        track,
        stacks,
    )


def _framing_rules(trace: _Trace) -> Iterator[Broken]:
    framing, end = trace.framing, np.asarray([len(trace.packets)], np.int64)
    yield "framing", end if framing.stopped_at < framing.size or framing.damage else end[:0]
    yield "packet-damaged", trace.packets.damaged
    yield "bundle-damaged", np.zeros(framing.bad_bundles, np.int64)
    yield "bundle-too-large", np.zeros(framing.large_bundles, np.int64)


def _state_rules(trace: _Trace) -> Iterator[Broken]:
    packets = trace.packets
    event = np.isin(packets.kind, (TRACK_EVENT, GPU_EVENT))
    entries = ev.interned_entries(packets)
    lost = []
    needy = event & (packets.flags & _NEEDS_STATE > 0)
    for uses in (*trace.events.uses, *trace.gpu.uses):
        needy[uses.packet] = True
        lost.append(unresolved(uses, entries, trace.state))
    yield "no-sequence", np.flatnonzero(event & (packets.sequence == 0))
    yield (
        "state-not-cleared",
        np.flatnonzero(needy & ~trace.state.cleared & (packets.sequence != 0)),
    )
    yield "unresolved-name", np.concatenate(lost)


def _track_rules(trace: _Trace) -> Iterator[Broken]:
    tracks, events = trace.tracks, trace.events
    used = trace.track != 0
    yield "undeclared-track", events.packet[used & ~np.isin(trace.track, tracks.uuid)]
    yield (
        "undeclared-parent",
        tracks.packet[(tracks.parent != 0) & ~np.isin(tracks.parent, tracks.uuid)],
    )
    counters = tracks.uuid[tracks.counter]
    slice_tracks = np.setdiff1d(tracks.uuid, counters)
    slices = (events.type == ev.BEGIN) | (events.type == ev.END) | (events.type == ev.INSTANT)
    wrong = ((events.type == ev.COUNTER) & np.isin(trace.track, slice_tracks)) | (
        slices & np.isin(trace.track, counters)
    )
    yield "wrong-track-kind", events.packet[wrong & used]


def _stack_rules(trace: _Trace) -> Iterator[Broken]:
    yield "end-without-begin", trace.stacks.unopened
    yield "begin-without-end", trace.stacks.unclosed
    yield "crossing-slices", trace.stacks.crossing
    yield "tie-order", trace.stacks.ties


def _gpu_rules(trace: _Trace) -> Iterator[Broken]:
    gpu, machine = trace.gpu, trace.packets.machine
    asking = np.concatenate((trace.events.submits[0], gpu.waits[0]))
    asked = np.concatenate((trace.events.submits[1], gpu.waits[1]))
    # one number per (machine, event id), so that they compare as one
    _, id_number = np.unique(np.concatenate((gpu.event_id, asked)), return_inverse=True)
    keyed = machine[np.concatenate((gpu.packet, asking))] * len(id_number) + id_number
    given, wanted = keyed[: len(gpu.packet)], keyed[len(gpu.packet) :]
    order = np.argsort(given, kind="stable")
    again = np.zeros(len(given), np.bool_)
    again[order[1:]] = given[order[1:]] == given[order[:-1]]
    yield "duplicate-event-id", gpu.packet[again & gpu.has_id]
    yield "unresolved-event", asking[~np.isin(wanted, given)]
    yield "incomplete-gpu-event", gpu.packet[~gpu.has_id | ~gpu.has_queue]


def _clock_rules(trace: _Trace) -> Iterator[Broken]:
    packets = trace.packets
    event = np.isin(packets.kind, (TRACK_EVENT, GPU_EVENT))
    yield (
        "negative-time",
        np.concatenate(
            (np.flatnonzero(packets.timestamp < MISSING), trace.gpu.packet[trace.gpu.duration < 0])
        ),
    )
    yield "unrelated-clock", np.flatnonzero(trace.times.unrelated & event)
    first = np.flatnonzero(event)[:1]
    yield "no-clock-snapshot", first if not trace.times.snapshots else first[:0]


def _holdings(trace: _Trace) -> Holdings:
    packets, events, gpu = trace.packets, trace.events, trace.gpu
    timed = np.isin(packets.kind, (TRACK_EVENT, GPU_EVENT)) & (trace.times.ns >= 0)
    ends = np.concatenate(
        (trace.times.ns[timed], trace.times.ns[gpu.packet] + np.maximum(gpu.duration, 0))
    )
    return Holdings(
        bytes=trace.framing.size,
        packets=len(packets),
        sequences=len(np.unique(sequence_keys(packets)[packets.sequence != 0])),
        machines=len(np.unique(packets.machine)),
        tracks=len(np.unique(trace.tracks.uuid)),
        slices=trace.stacks.slices,
        instants=int(np.count_nonzero(events.type == ev.INSTANT)),
        counter_values=int(np.count_nonzero(events.type == ev.COUNTER)),
        gpu_events=len(gpu.packet),
        arrows=len(events.submits[0]) + len(gpu.waits[0]),
        first_ns=int(trace.times.ns[timed].min()) if timed.any() else None,
        last_ns=int(ends.max()) if timed.any() else None,
    )


def _notes(trace: _Trace) -> Iterator[str]:
    holds_events = len(trace.events.packet) or len(trace.gpu.packet)
    if not holds_events:
        yield "the file holds no slices, counters or GPU events"
    if trace.framing.zstd_bundles:
        yield (
            f"{trace.framing.zstd_bundles} bundles are compressed with zstd: not checked, "
            "and read by Perfetto v58 or newer only"
        )
    if trace.gpu.typed or len(trace.events.submits[0]):
        yield "typed GPU events and launch arrows need Perfetto v55 or newer"
    if trace.times.snapshots and not trace.times.primary:
        yield "no snapshot names the trace's clock; viewers take BOOTTIME"
    if trace.stacks.nested_empty:
        yield (
            f"{trace.stacks.nested_empty} slices of no length inside others: if that is not meant, "
            "ends were written after begins of the same time"
        )


def _offset(packets: Packets, row: int, framing: Framing) -> int:
    return int(packets.start[row]) if row < len(packets) else framing.stopped_at
