"""Telemetry and throughput as counter tracks: one absolute value per sample, from the time that it
holds.

A viewer holds a value until the next one, so interval means stand at the start of their interval
and the last value of a series is repeated at the end of its interval. Values are stored as 64-bit
floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL
from profharness.trace.derive import THROUGHPUT
from profharness.trace.model import I64, Trace
from profharness.trace.sample_metrics import HSA_ALLOCATED, RECORDED_METRICS, metric_of
from profharness.writers.groups import Groups, group_rows
from profharness.writers.options import RATE_UNIT, WriteOptions
from profharness.writers.output import Output
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import Double, Message, Same, integers, packets
from profharness.writers.protobuf.schema import Packet, Track, TrackEvent
from profharness.writers.tracks import Machine, Registry, child_track, state_packets, track_packet

CHUNK = 1 << 14
_TELEMETRY = "Telemetry"
_RECORDED = {
    metric.name: "Memory through HSA" if metric.name == HSA_ALLOCATED else "Memory of torch"
    for metric in RECORDED_METRICS
}
"""The group of a metric that no sampler reads: whose memory it is."""


@dataclass(frozen=True)
class _Points:
    """Values to write, sorted by track and time."""

    track: I64
    at: I64
    value: npt.NDArray[np.float64]

    def on(self, tracks: I64) -> _Points:
        """The values where each series is drawn on one of the `tracks`, in order of these."""
        track = tracks[self.track]
        order = np.lexsort((self.at, track))
        return _Points(track[order], self.at[order], self.value[order])


@dataclass(frozen=True)
class CounterWriter:
    """Writes all samples of a trace."""

    trace: Trace
    registry: Registry
    out: Output
    options: WriteOptions

    def write(self) -> None:
        """One track per source, device and metric, under one group per source and device, and
        another for each allocator that has tracks too. Throughput, whose samples come from a source
        per point, has one track per pass and backend.
        """
        samples = self.trace.samples
        series = group_rows(samples.source, samples.device, samples.metric)
        points = _with_closing(series.of, samples.at_ns, samples.until_ns, samples.value)
        owner = self._owners(series)
        first = series.first
        tracks = group_rows(owner, samples.device[first], samples.metric[first])
        uuids = np.zeros(len(tracks), np.int64)
        sources = owner[tracks.first]
        points = points.on(tracks.of)
        for source in np.unique(sources):
            machine = self._machine(int(source))
            sequence = self.registry.sequence()
            for packet in state_packets(sequence, machine, ()):
                self.out.write(packet)
            mine = np.flatnonzero(sources == source)
            for position, uuid, fields in self._tracks(first[tracks.first[mine]]):
                uuids[mine[position]] = uuid
                self.out.write(track_packet(sequence, machine, fields))
            rows = slice(
                np.searchsorted(points.track, mine[0]),
                np.searchsorted(points.track, mine[-1], "right"),
            )
            self._write_points(
                points, rows, uuids, wire.integer(Packet.SEQUENCE, sequence) + machine.stamp()
            )

    def _owners(self, series: Groups) -> I64:
        """For each series its source; for throughput that of the first point of its pass and
        backend, so long as the points follow one another.
        """
        samples = self.trace.samples
        owner = samples.source[series.first].astype(np.int64)
        is_rate = samples.metric[series.first] == self.trace.strings.find(THROUGHPUT)
        rates = np.flatnonzero(is_rate & (owner != NULL))
        if not len(rates):
            return owner
        start = np.full(len(series), np.iinfo(np.int64).max)
        end = np.zeros(len(series), np.int64)
        np.minimum.at(start, series.of, samples.at_ns)
        np.maximum.at(end, series.of, samples.until_ns)
        latest: dict[tuple[str, str, str, int | None], tuple[int, int]] = {}
        for row in rates[np.argsort(start[rates], kind="stable")].tolist():
            origin = self.trace.sources[int(owner[row])]
            key = (origin.pass_name, _way(origin.point), origin.host, origin.rank)
            leader, until = latest.get(key, (int(owner[row]), 0))
            if origin.pass_name and start[row] >= until:
                owner[row] = leader
                latest[key] = (leader, int(end[row]))
        return owner

    def _write_points(self, points: _Points, rows: slice, uuids: I64, fixed: bytes) -> None:
        kind = Same(wire.integer(TrackEvent.TYPE, TrackEvent.COUNTER))
        for at in range(rows.start, rows.stop, CHUNK):
            chunk = slice(at, min(at + CHUNK, rows.stop))
            event = (
                kind,
                integers(TrackEvent.TRACK_UUID, uuids[points.track[chunk]]),
                Double(TrackEvent.DOUBLE_COUNTER_VALUE, points.value[chunk]),
            )
            fields = (
                integers(Packet.TIMESTAMP, points.at[chunk]),
                Same(fixed),
                Message(Packet.TRACK_EVENT, event),
            )
            self.out.write(packets(fields, chunk.stop - at).data)

    def _tracks(self, first: I64) -> Iterator[tuple[int, int, bytes]]:
        """(position in `first`, uuid, TrackDescriptor fields), each group before its counters."""
        groups: dict[tuple[int, str], int] = {}
        samples = self.trace.samples
        for position, row in enumerate(first):
            device = int(samples.device[row])
            metric = self.trace.strings[int(samples.metric[row])]
            words = _RECORDED.get(metric, _TELEMETRY)
            group = (device, words)
            if group not in groups:
                groups[group] = self.registry.uuid()
                name = self._group_name(words, int(samples.source[row]), device)
                yield position, groups[group], child_track(groups[group], 0, name)
            uuid = self.registry.uuid()
            yield (
                position,
                uuid,
                child_track(uuid, groups[group], self.options.metric_title(metric))
                + _counter(metric, self.options.rate_unit, self._unit(samples.source[row], metric)),
            )

    def _unit(self, source: int, metric: str) -> str:
        """The unit that a counter has in its own file; empty where it states none."""
        return self._units[source].get(metric, "") if source >= 0 else ""

    @cached_property
    def _units(self) -> tuple[dict[str, str], ...]:
        return tuple(dict(source.units) for source in self.trace.sources)

    def _group_name(self, words: str, source: int, device: int) -> str:
        """The title, whose end is the device: our reader takes it from there."""
        origin = self.trace.sources[source] if source >= 0 else None
        parts = [words]
        if origin is not None:
            point = _way(origin.point) if words == _TELEMETRY else origin.point
            parts += [part for part in (origin.pass_name, point, origin.host) if part]
            if origin.rank is not None:
                parts.append(f"rank {origin.rank}")
        if device >= 0:
            shown = self.trace.devices[device]
            parts.append(f"{shown.name} GPU {shown.index}".strip())
        return " · ".join(parts)

    def _machine(self, source: int) -> Machine:
        return self.registry.machine(self.trace.sources[source].host if source >= 0 else "")


def _counter(metric: str, rate_unit: str, stated: str) -> bytes:
    """TrackDescriptor fields of a counter: its unit, which of a rate says what its items are, one
    vertical scale for the same metric of all devices, and what it says. A counter that is no metric
    of ours has the unit `stated` by its own file.

    The key of the scale is the metric's own name, by which our reader knows it: the track itself is
    called by a title for people. Viewers show the description beside it.
    """
    known = metric_of(metric)
    scale = wire.text(Track.Y_AXIS_SHARE_KEY, metric)
    if known is None:
        return wire.blob(Track.COUNTER, scale + (_unit_fields(stated) if stated else b""))
    unit = _unit_fields(rate_unit if known.unit == RATE_UNIT else known.unit)
    return wire.text(Track.DESCRIPTION, known.meaning) + wire.blob(Track.COUNTER, scale + unit)


def _unit_fields(unit: str) -> bytes:
    return (
        wire.integer(Track.UNIT, Track.UNIT_BYTES)
        if unit == "B"
        else wire.text(Track.UNIT_NAME, unit)
    )


def _way(point: str) -> str:
    """What the points of one curve share: the name of a point without its level."""
    return point.rpartition("-")[0]


def _with_closing(track: I64, at: I64, until: I64, value: npt.NDArray[np.float64]) -> _Points:
    """Samples in order of track and time, each series closed at the end of its last interval."""
    order = np.lexsort((at, track))
    last = (
        order[np.append(np.flatnonzero(np.diff(track[order])), len(order) - 1)]
        if len(order)
        else order
    )
    closing = last[until[last] > at[last]]
    tracks = np.concatenate((track[order], track[closing]))
    times = np.concatenate((at[order], until[closing]))
    values = np.concatenate((value[order], value[closing]))
    final = np.lexsort((times, tracks)) if len(closing) else np.arange(len(order))
    return _Points(tracks[final], times[final], values[final])
