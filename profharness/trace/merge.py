"""Several traces as one: every record kept, pools joined, indices and codes rewritten. Pure.

Devices of one host and identity become one; devices without identity stay apart, since two files' "device 0" may
be two devices. Streams become one where the same process, pass, device and file format number them alike. Correlation ids
are kept: they are unique within a source and process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from profharness.trace.model import I32, NULL, Counters, Device, Stream, Strings, Table, Trace, concat


@dataclass(frozen=True, eq=False)
class Places:
    """For one trace the new position of each string, source, device, stream and op, and of its first kernel.

    `codes` and `ops` are None where they stay.
    """

    codes: I32 | None
    sources: I32
    devices: I32
    streams: I32
    ops: I32 | None
    first_kernel: int


def merge(traces: Sequence[Trace]) -> Trace:
    """One trace with the records of all, in order; at least one is needed. Times are taken as they are: align first."""
    return traces[0] if len(traces) == 1 else merge_with_places(traces)[0]


def merge_with_places(traces: Sequence[Trace]) -> tuple[Trace, list[Places]]:
    """`merge`, with the new place of what each trace held."""
    strings = Strings()
    devices = _Devices()
    streams = _Streams()
    places = []
    sources = ops = kernels = 0
    for trace in traces:
        device_places = devices.add(trace.devices)
        places.append(Places(
            strings.codes(trace.strings.texts), _shifted(len(trace.sources), sources), device_places,
            streams.add(trace, device_places), _shifted(len(trace.ops), ops), kernels))
        sources += len(trace.sources)
        ops += len(trace.ops)
        kernels += len(trace.kernels)
    tables = {}
    for name, table in traces[0].tables():
        parts = [_rewritten(getattr(trace, name), place) for trace, place in zip(traces, places, strict=True)]
        filled = [part for part in parts if len(part)]
        tables[name] = concat(filled) if filled else table
    statistics = tuple(replace(row, source=int(place.sources[row.source])) for trace, place in zip(traces, places, strict=True)
                       for row in trace.statistics)
    merged = Trace(tuple(source for trace in traces for source in trace.sources), strings, tuple(devices.all), tuple(streams.all),
                   problems=tuple(problem for trace in traces for problem in trace.problems), statistics=statistics,
                   **tables)  # type: ignore[arg-type] # each name maps to its own kind of table
    return merged, places


def place_tables(trace: Trace, places: Places) -> dict[str, Table]:
    """The tables of one trace alone, with the positions of the merged one."""
    alone = replace(places, codes=None, ops=None, first_kernel=0)
    return {name: _rewritten(table, alone) for name, table in trace.tables()}


def _shifted(count: int, first: int) -> I32:
    return np.arange(first, first + count, dtype=np.int32)


class _Devices:
    """The joined devices; the first non-empty attribute of each wins."""

    def __init__(self) -> None:
        self.all: list[Device] = []
        self._known: dict[tuple[str, str], int] = {}

    def add(self, devices: Sequence[Device]) -> I32:
        """The position of each."""
        return np.array([self._place(device) for device in devices], np.int32)

    def _place(self, device: Device) -> int:
        known = self._known.get((device.host, device.identity)) if device.identity else None
        if known is None:
            self._known[device.host, device.identity] = len(self.all)
            self.all.append(device)
            return len(self.all) - 1
        other = self.all[known]
        self.all[known] = replace(
            other, name=other.name or device.name, vendor=other.vendor or device.vendor,
            compute_units=other.compute_units if other.compute_units is not None else device.compute_units,
            architecture=other.architecture or device.architecture, dies=other.dies if other.dies is not None else device.dies,
            max_clock_mhz=other.max_clock_mhz if other.max_clock_mhz is not None else device.max_clock_mhz,
            rank=other.rank if other.rank == device.rank else None)
        return known


class _Streams:
    """The joined streams."""

    def __init__(self) -> None:
        self.all: list[Stream] = []
        self._known: dict[tuple[int, str, int, str], int] = {}

    def add(self, trace: Trace, device_places: I32) -> I32:
        """The position of each; tools number streams differently, and a pid of one pass is no pid of another, so that both are part of the name."""
        origin = ",".join(sorted({f"{source.pass_name} {source.format}" for source in trace.sources}))
        return np.array([self._place(stream, device_places, origin) for stream in trace.streams], np.int32)

    def _place(self, stream: Stream, device_places: I32, origin: str) -> int:
        moved = replace(stream, device=int(device_places[stream.device]) if stream.device != NULL else NULL)
        key = (moved.device, moved.name, moved.pid, origin)
        known = self._known.get(key) if moved.pid != NULL else None
        if known is None:
            known = self._known[key] = len(self.all)
            self.all.append(moved)
        return known


def _rewritten(table: Table, place: Places) -> Table:
    """The table with its codes and indices of the merged trace."""
    changed = {}
    for column in fields(table):
        values = getattr(table, column.name)
        moved = place.codes if column.metadata["unit"] == "string" else getattr(place, column.metadata.get("of", ""), None)
        if moved is not None:
            changed[column.name] = looked_up(values, moved)
    if isinstance(table, Counters):
        changed["kernel"] = np.where(table.kernel == NULL, NULL, table.kernel + place.first_kernel)
    return table.with_columns(**changed) if len(table) else table


def looked_up(positions: I32, places: I32) -> I32:
    """`places[positions]`, and NULL where the position is NULL."""
    if not len(places):
        return np.full(len(positions), NULL, np.int32)
    return np.where(positions == NULL, np.int32(NULL), places[positions])
