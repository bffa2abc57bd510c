"""The samples of one host that lie in a file, one column at a time: rows of days are never all in
memory, since a column is a view of the file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from profharness.errors import InputError
from profharness.rundir import telemetry
from profharness.rundir.foreign.border import DAMAGED, reading
from profharness.rundir.foreign.limits import SMALL_BYTES
from profharness.rundir.telemetry_rows import (
    FIXED_BYTES,
    Header,
    Rows,
    read_header,
    without_empty_rows,
)
from profharness.rundir.telemetry_samples import column_series
from profharness.trace.device_counters import is_raw
from profharness.trace.model import F64, I64, Device, Samples, Trace


class ColumnSamples(NamedTuple):
    """All samples of a metric of a device: begins and ends on CLOCK_MONOTONIC in ns, and values."""

    at_ns: I64
    until_ns: I64
    value: F64


class KeptColumn(NamedTuple):
    """A metric of a device (None for the host), and which column of the file it is; -1 where it is
    among the figures that follow from hardware counters.
    """

    metric: str
    device: Device | None
    place: int


@dataclass(frozen=True)
class KeptSamples:
    """A file of one host, and what is in it."""

    path: Path
    host: str
    columns: tuple[KeptColumn, ...]
    header: Header | None
    figures: Trace | None

    @contextmanager
    def opened(self) -> Iterator[OpenSamples]:
        """The file while columns are read from it. Raises InputError where that fails."""
        if self.header is None:
            yield OpenSamples(None, self.figures)
            return
        with reading(self.path), self.path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            length = FIXED_BYTES + int.from_bytes(data[8:12], "little")
            whole, _ = without_empty_rows(
                self.header,
                data,  # type: ignore[arg-type]  # a map of the file is read as bytes are
                length,
            )
            yield OpenSamples(Rows(self.header, whole, length), self.figures)


class OpenSamples(NamedTuple):
    """A file's rows, and the trace of what is no column of theirs."""

    rows: Rows | None
    figures: Trace | None

    def of(self, column: KeptColumn) -> ColumnSamples:
        """The samples of one of the file's columns, by time."""
        if column.place >= 0 and self.rows is not None:
            return ColumnSamples(*column_series(self.rows, column.place))
        trace = self.figures
        assert trace is not None
        where = trace.samples.metric == trace.strings.find(column.metric)
        place = -1 if column.device is None else trace.devices.index(column.device)
        found = trace.samples.take(where & (trace.samples.device == place))
        return ColumnSamples(found.at_ns, found.until_ns, found.value)


def kept_samples(path: Path) -> KeptSamples:
    """What a sampler's file holds (`<host>.samples.bin`, or the Parquet table of it). Raises
    InputError for another file.
    """
    with path.open("rb") as file:
        head = file.read(FIXED_BYTES)
        if not telemetry.sniff(head, path.name):
            raise InputError(f"{path} is no file of a sampler", DAMAGED)
        if head.startswith(telemetry.PARQUET_MAGIC):
            return _whole(path)
        length = int.from_bytes(head[8:12], "little")
        if length > SMALL_BYTES:
            raise InputError(f"{path}: its header has {length} bytes", DAMAGED)
        header, _ = read_header(head + file.read(length), path)
    devices = tuple(
        Device(one.number, header.host, one.identity, one.name, one.vendor)
        for one in header.devices
    )
    columns = [
        KeptColumn(one.metric, devices[one.device] if one.device >= 0 else None, place)
        for place, one in enumerate(header.columns)
        if one.role == "value" and not is_raw(one.metric)
    ]
    counted = any(is_raw(one.metric) for one in header.columns if one.role == "value")
    figures = telemetry.read(path) if counted else None
    if figures is not None:
        known = {(one.metric, one.device) for one in columns}
        columns += [one for one in _columns(figures) if one[:2] not in known]
    return KeptSamples(path, header.host, tuple(columns), header, figures)


def _whole(path: Path) -> KeptSamples:
    trace = telemetry.read(path)
    return KeptSamples(path, trace.sources[0].host, tuple(_columns(trace)), None, trace)


def _columns(trace: Trace) -> Iterator[KeptColumn]:
    """Each metric of each device of a trace."""
    samples: Samples = trace.samples
    pairs = dict.fromkeys(zip(samples.metric.tolist(), samples.device.tolist(), strict=True))
    for code, place in pairs:
        yield KeptColumn(trace.strings[code], trace.devices[place] if place >= 0 else None, -1)
