"""Several traces as one: every record kept, pools joined, indices and codes rewritten. Pure.

Devices of one host and identity become one. So do those of one number in the files of one process
of a run, which recorded in pieces; other devices without identity stay apart, since two files'
"device 0" may be two devices. Streams become one where the same process, pass, device and file
format number them alike. Correlation ids are kept: they are unique within a source and process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from profharness.trace.columns.table import NULL, Table, concat
from profharness.trace.model import I32, Counters, Device, Stream, Strings, Trace
from profharness.trace.pieces import Process, recording_process


@dataclass(frozen=True, eq=False)
class Places:
    """For one trace the new position of each string, source, device, stream and op, and of its
    first kernel.

    `codes` and `ops` are None where they stay.
    """

    codes: I32 | None
    sources: I32
    devices: I32
    streams: I32
    ops: I32 | None
    first_kernel: int


def merge(traces: Sequence[Trace]) -> Trace:
    """One trace with the records of all, in order; at least one is needed. Times are taken as they
    are: align first.
    """
    return traces[0] if len(traces) == 1 else merge_with_places(traces)[0]


def merge_with_places(traces: Sequence[Trace]) -> tuple[Trace, list[Places]]:
    """`merge`, with the new place of what each trace held."""
    sizes = [(len(trace.ops), len(trace.kernels)) for trace in traces]
    return merge_by_table(traces, sizes, lambda name, position, _: getattr(traces[position], name))


Tables = Callable[[str, int, Strings], Table]
"""Gives the table of this name of the trace at this position; it may read it, adding texts to the
strings.
"""


def merge_by_table(
    heads: Sequence[Trace], sizes: Sequence[tuple[int, int]], table: Tables, *, coded: bool = False
) -> tuple[Trace, list[Places]]:
    """`merge_with_places` of traces whose tables come one by one, so that no more than one of them
    is there twice.

    `heads` are the traces, whose own tables are not looked at; `sizes` their numbers of ops and
    kernels. `coded`: texts of the tables have codes of the strings that were given along.
    """
    strings = Strings()
    devices = _Devices()
    streams = _Streams()
    places = []
    sources = ops = kernels = 0
    for trace, (more_ops, more_kernels) in zip(heads, sizes, strict=True):
        device_places = devices.add(trace)
        places.append(
            Places(
                strings.codes(trace.strings.texts),
                _shifted(len(trace.sources), sources),
                device_places,
                streams.add(trace, device_places),
                _shifted(more_ops, ops),
                kernels,
            )
        )
        sources += len(trace.sources)
        ops += more_ops
        kernels += more_kernels
    tables = {}
    for name, empty in heads[0].tables():
        parts = (
            _rewritten(
                table(name, position, strings), replace(place, codes=None) if coded else place
            )
            for position, place in enumerate(places)
        )
        filled = [part for part in parts if len(part)]
        tables[name] = concat(filled) if filled else type(empty).empty()
    statistics = tuple(
        replace(row, source=int(place.sources[row.source]))
        for trace, place in zip(heads, places, strict=True)
        for row in trace.statistics
    )
    tool_metrics = tuple(
        replace(metric, source=int(place.sources[metric.source]))
        for trace, place in zip(heads, places, strict=True)
        for metric in trace.tool_metrics
    )
    merged = Trace(
        tuple(source for trace in heads for source in trace.sources),
        strings,
        tuple(devices.all),
        tuple(streams.all),
        problems=tuple(problem for trace in heads for problem in trace.problems),
        statistics=statistics,
        tool_metrics=tool_metrics,
        **tables,  # type: ignore[arg-type]  # each name maps to its own kind of table
    )
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
        self._known: dict[tuple[Hashable, ...], int] = {}

    def add(self, trace: Trace) -> I32:
        """The position of each device of one trace."""
        process = recording_process(trace.sources[0]) if len(trace.sources) == 1 else None
        if len({(device.index, device.name) for device in trace.devices}) < len(trace.devices):
            process = None  # nothing tells which of them another file means
        return np.array([self._place(device, process) for device in trace.devices], np.int32)

    def _place(self, device: Device, process: Process | None) -> int:
        key: tuple[Hashable, ...] | None = None
        if device.identity:
            key = (device.host, device.identity)
        elif process is not None:
            key = (process, device.index, device.name)
        known = self._known.get(key) if key is not None else None
        if known is None:
            if key is not None:
                self._known[key] = len(self.all)
            self.all.append(device)
            return len(self.all) - 1
        other = self.all[known]
        self.all[known] = replace(
            other,
            name=other.name or device.name,
            vendor=other.vendor or device.vendor,
            compute_units=other.compute_units
            if other.compute_units is not None
            else device.compute_units,
            architecture=other.architecture or device.architecture,
            dies=other.dies if other.dies is not None else device.dies,
            max_clock_mhz=other.max_clock_mhz
            if other.max_clock_mhz is not None
            else device.max_clock_mhz,
            pci_id=other.pci_id or device.pci_id,
            memory_bytes=other.memory_bytes
            if other.memory_bytes is not None
            else device.memory_bytes,
            rank=other.rank if other.rank == device.rank else None,
            ceilings=other.ceilings or device.ceilings,
        )
        return known


class _Streams:
    """The joined streams."""

    def __init__(self) -> None:
        self.all: list[Stream] = []
        self._known: dict[tuple[Hashable, ...], int] = {}

    def add(self, trace: Trace, device_places: I32) -> I32:
        """The position of each; tools number streams differently, and a pid of one pass is no pid
        of another, so that both are part of the name.
        """
        origin = ",".join(
            sorted({f"{source.pass_name} {source.format}" for source in trace.sources})
        )
        process = recording_process(trace.sources[0]) if len(trace.sources) == 1 else None
        before = len(self.all)  # those of one trace are different ones
        places = [
            self._place(
                replace(
                    stream,
                    device=int(device_places[stream.device]) if stream.device != NULL else NULL,
                ),
                (stream.pid, origin) if stream.pid != NULL else process,
                before,
            )
            for stream in trace.streams
        ]
        return np.array(places, np.int32)

    def _place(self, stream: Stream, process: tuple[Hashable, ...] | None, before: int) -> int:
        key = None if process is None else (stream.device, stream.name, *process)
        known = self._known.get(key) if key is not None else None
        if known is None or known >= before:
            known = len(self.all)
            if key is not None:
                self._known.setdefault(key, known)
            self.all.append(stream)
        return known


def _rewritten(table: Table, place: Places) -> Table:
    """The table with its codes and indices of the merged trace."""
    if not len(table):
        return table
    changed = {}
    for column in fields(table):
        values = getattr(table, column.name)
        moved = (
            place.codes
            if column.metadata["unit"] == "string"
            else getattr(place, column.metadata.get("of", ""), None)
        )
        if moved is not None:
            changed[column.name] = looked_up(values, moved)
    if isinstance(table, Counters):
        changed["kernel"] = np.where(table.kernel == NULL, NULL, table.kernel + place.first_kernel)
    return table.with_columns(**changed)


def looked_up(positions: I32, places: I32) -> I32:
    """`places[positions]`, and NULL where the position is NULL."""
    if not len(places):
        return np.full(len(positions), NULL, np.int32)
    return np.where(positions == NULL, np.int32(NULL), places[positions])
