"""Parts of a trace: by source, by time, by point. References between records stay right. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.clocks.align import TIME_COLUMNS
from profharness.trace.columns.table import NULL
from profharness.trace.merge import looked_up
from profharness.trace.model import I32, I64, Device, Stream, Trace
from profharness.trace.parts.sampled import is_sampled

Mask = npt.NDArray[np.bool_]


def by_source(trace: Trace, wanted: npt.ArrayLike) -> Trace:
    """The records of the sources where the mask holds (one value per source); the other sources are
    left out.

    Devices and streams that only the others used are left out too; those that nobody used stay.
    """
    mask = np.asarray(wanted, np.bool_)
    kept = {name: mask[table.source] & (table.source != NULL) for name, table in _sourced(trace)}
    part = rows(trace, kept)
    places = np.where(mask, np.cumsum(mask) - 1, NULL).astype(np.int32)
    tables = {
        name: table.with_columns(source=looked_up(table.source, places))
        for name, table in _sourced(part)
    }
    sources = tuple(source for source, keep in zip(trace.sources, mask, strict=True) if keep)
    statistics = tuple(
        replace(row, source=int(places[row.source])) for row in trace.statistics if mask[row.source]
    )
    metrics = tuple(
        replace(metric, source=int(places[metric.source]))
        for metric in trace.tool_metrics
        if mask[metric.source]
    )
    return _without_unused(
        trace,
        replace(part, sources=sources, statistics=statistics, tool_metrics=metrics, **tables),
    )


def window(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """The records that start in [start_ns, end_ns), whole: adjacent windows share no record and
    lose none.

    Telemetry samples count from the start of their interval, requests from when they were sent,
    counters with their kernel.
    """
    times = {
        name: getattr(table, "sent_ns" if name == "requests" else TIME_COLUMNS[name][0])
        for name, table in trace.tables()
        if name in TIME_COLUMNS
    }
    kept = {name: (at >= start_ns) & (at < end_ns) for name, at in times.items()}
    return rows(trace, {**kept, "counters": trace.counters.kernel != NULL})


def by_point(trace: Trace, point: str) -> Trace:
    """The records of one point of the scan, counters with their kernel; telemetry and samples of
    Python know no points and are taken by the time of the point's marks.
    """
    code = trace.strings.find(point)
    kept: dict[str, Mask] = {"counters": trace.counters.kernel != NULL}
    for name, table in trace.tables():
        if hasattr(table, "point"):
            kept[name] = (table.point == code) & (code != NULL)
    marks = trace.marks
    of_point = np.flatnonzero(kept["marks"] & (marks.kind == trace.strings.find("point")))
    for name in ("samples", "host_samples"):
        at: I64 = getattr(trace, name).at_ns
        kept[name] = np.zeros(len(at), np.bool_)
        for row in of_point:
            start = marks.start_ns[row]
            kept[name] |= (at >= start) & (at < start + marks.dur_ns[row])
    return rows(trace, kept)


def without_frames(trace: Trace) -> Trace:
    """The records without Python's functions and modules, of which no figure is made; those of
    sampled stacks stay.
    """
    frame = trace.strings.find("frame")
    if frame == NULL:
        return trace
    kept = (trace.marks.kind != frame) | is_sampled(trace)
    return trace if kept.all() else rows(trace, {"marks": kept})


def rows(trace: Trace, kept: Mapping[str, Mask]) -> Trace:
    """The rows by mask and table (absent: all rows); ops of kernels and copies follow, and counters
    their kernels.
    """
    ops = kept.get("ops", np.ones(len(trace.ops), np.bool_))
    kernels = kept.get("kernels", np.ones(len(trace.kernels), np.bool_))
    # a table that is kept whole is not copied: often that is most of a trace
    tables: dict[str, Any] = {
        name: table.take(kept[name]) if name in kept and not kept[name].all() else table
        for name, table in trace.tables()
    }
    if not ops.all():
        places = _new_positions(ops).astype(np.int32)
        for name, table in tables.items():
            columns = [column for column, of in _references(table) if of == "ops"]
            if columns:
                tables[name] = table.with_columns(
                    **{column: looked_up(getattr(table, column), places) for column in columns}
                )
    new_kernels = _new_positions(kernels)
    counters = tables["counters"]
    owner = np.where(
        counters.kernel == NULL, NULL, new_kernels[counters.kernel] if len(new_kernels) else NULL
    )
    dropped = (counters.kernel != NULL) & (owner == NULL)
    tables["counters"] = counters.with_columns(kernel=owner).take(~dropped)
    return replace(trace, **tables)


def _sourced(trace: Trace) -> list[tuple[str, Any]]:
    return [(name, table) for name, table in trace.tables() if len(table)]


def _new_positions(kept: Mask) -> I64:
    return np.where(kept, np.cumsum(kept) - 1, NULL).astype(np.int64)


def _without_unused(whole: Trace, part: Trace) -> Trace:
    """Leave out devices and streams that records of `whole` used and none of `part` does."""
    devices = ~_used(whole, "devices", len(whole.devices)) | _used(
        part, "devices", len(whole.devices)
    )
    streams = ~_used(whole, "streams", len(whole.streams)) | _used(
        part, "streams", len(whole.streams)
    )
    devices |= np.isin(
        np.arange(len(devices)),
        [stream.device for stream, keep in zip(whole.streams, streams, strict=True) if keep],
    )
    if devices.all() and streams.all():
        return part
    device_places = _new_positions(devices).astype(np.int32)
    stream_places = _new_positions(streams).astype(np.int32)
    kept_devices: tuple[Device, ...] = tuple(
        d for d, keep in zip(whole.devices, devices, strict=True) if keep
    )
    kept_streams: tuple[Stream, ...] = tuple(
        replace(s, device=int(device_places[s.device]) if s.device != NULL else NULL)
        for s, keep in zip(whole.streams, streams, strict=True)
        if keep
    )
    tables = {}
    for name, table in part.tables():
        changed: dict[str, I32] = {
            column: looked_up(
                getattr(table, column), device_places if of == "devices" else stream_places
            )
            for column, of in _references(table)
            if of in ("devices", "streams")
        }
        tables[name] = table.with_columns(**changed)
    return replace(
        part,
        devices=kept_devices,
        streams=kept_streams,
        **tables,  # type: ignore[arg-type] # each table keeps its own type
    )


def _used(trace: Trace, pool: str, size: int) -> Mask:
    used = np.zeros(size, np.bool_)
    for _, table in trace.tables():
        for column, of in _references(table):
            if of == pool:
                values = getattr(table, column)
                used[values[values != NULL]] = True
    return used


def _references(table: Any) -> list[tuple[str, str]]:
    """Columns that hold positions, with what they point into."""
    return [
        (name, column.metadata["of"])
        for name, column in table.__dataclass_fields__.items()
        if "of" in column.metadata
    ]
