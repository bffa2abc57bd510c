"""Kineto's Chrome JSON, as torch.profiler exports it: every generation since 2021, ROCm and CUDA,
plain or gzip.

It stamps CLOCK_REALTIME: microseconds since the epoch, or since `baseTimeNanoseconds` in newer
files. The JSON of rocprof v1 has the same outer form but other events, and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.findings import Severity
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.kineto import counter_series, doubts
from profharness.readers.kineto.devices import DeviceRows
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.foreign import refuse_foreign
from profharness.readers.kineto.header import Header, read_header
from profharness.readers.kineto.places import Origin
from profharness.readers.kineto.sharing import shared
from profharness.readers.kineto.streams import open_stream
from profharness.readers.kineto.tables import Tables, build_tables
from profharness.readers.kineto.unions import Record
from profharness.readers.left_out import left_out
from profharness.readers.own import sidecar as sidecars
from profharness.readers.own.sidecar import Sidecar
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Allocations,
    Api,
    ClockDomain,
    Marks,
    Ops,
    Problem,
    Samples,
    Source,
    Strings,
    Trace,
)
from profharness.trace.parts.started import without_lead_in, without_step
from profharness.trace.wanted import Wanted

name = "kineto"

_KEYS = (b'"traceEvents"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b'"distributedInfo"')
_OTHERS = (b'"rocprofiler-sdk-tool"', b'"experiments"', b'"BeginNs"')
_LONG_HEAD = 1 << 16
_EPOCH_NS = 10**18  # 2001-09-09: times of day are larger, times since a boot are smaller
_SENTENCES: dict[str, tuple[Severity, str]] = {
    "start": ("warning", "events have no readable start and were left out"),
    "duration": ("warning", "events have no readable duration: taken as zero"),
    "negative": ("warning", "events have a negative duration: taken as zero"),
    "rounded": ("info", "times have digits below a nanosecond: rounded"),
    "arguments": ("warning", "events have arguments of unexpected form: read without them"),
    "series": (
        "warning",
        "samples of device counters have no time or an impossible value: left out",
    ),
}


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """An object with a key of Kineto, or with so much in front that none is in sight; or a list of
    events that have phases.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if any(key in head for key in _OTHERS):
        return False
    if start.startswith(b"{"):
        return any(key in head for key in _KEYS) or (
            len(head) >= _LONG_HEAD and start[1:].lstrip().startswith(b'"')
        )
    return start.startswith(b"[") and b'"ph"' in head


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file; what ran on the devices alone takes less time than everything, its
    times alone the least.

    Rows stand in file order. Raises InputError when nothing in the file is usable.
    """
    return read_blocks(path, wanted=wanted)


def read_blocks(
    path: Path, *, wanted: Wanted = Wanted.ALL, block_bytes: int = BLOCK_BYTES
) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it; memory and
    speed do.
    """
    beside, problems = sidecars.load_or_report(path)
    if beside.window.lead_in and wanted in (Wanted.DEVICES, Wanted.TIMES):
        return _without_host(read_blocks(path, block_bytes=block_bytes))  # cut by marks of the host
    strings = Strings()
    rows, stream = open_stream(path, wanted, strings, block_bytes)
    with shared(path, wanted, block_bytes) as sharing:
        for batch in stream:
            rows.add(batch)
            del batch  # before the next is decoded
            sharing.go_on(stream, rows)
    if isinstance(rows, DeviceRows) and rows.ambiguous():
        return read_blocks(path, block_bytes=block_bytes)
    if not wanted.host and len(rows.ranges):  # their launches say where they belong
        return _without_host(read_blocks(path, block_bytes=block_bytes))
    refuse_foreign(path, rows, stream)
    header = read_header(stream.keys)
    rank = beside.rank if header.distributed.rank is None else header.distributed.rank
    base_ns, clock, doubt = _clock(path, header, rows)
    origin = Origin(
        base_ns, beside.host or header.host, rank, (*beside.groups, *header.distributed.groups)
    )
    doubted = list(doubts.problems(path, rows))
    tables = build_tables(rows, header, origin)
    if wanted is Wanted.TIMES and tables.twins:  # only their queues and calls tell whether they are
        return read_blocks(path, wanted=Wanted.DEVICES, block_bytes=block_bytes)
    units = counter_series.units(tables.samples, strings)
    source = _source(header, beside, origin, clock, tables, path)
    source = replace(source, names=rows.named.names(), units=units)
    problems += [
        *doubt,
        *stream.problems(),
        *_header_problems(path, stream, header),
        *doubted,
        *_row_problems(path, rows, tables),
    ]
    trace = Trace(
        sources=(source,),
        strings=strings,
        devices=tables.devices,
        streams=tables.streams,
        kernels=tables.kernels,
        copies=tables.copies,
        api=tables.api,
        ops=tables.ops,
        marks=tables.marks,
        samples=tables.samples,
        allocations=tables.allocations,
        counters=tables.counters,
        problems=tuple(problems),
    )
    if beside.window.unfinished_step is not None:
        trace = without_step(trace, beside.window.unfinished_step)
    first = beside.window.first_step if beside.window.lead_in else None
    return trace if first is None else without_lead_in(trace, first)


def _without_host(trace: Trace) -> Trace:
    """What ran on the devices alone."""
    return replace(
        trace,
        kernels=trace.kernels.with_columns(op=np.full(len(trace.kernels), NULL)),
        api=Api.empty(),
        ops=Ops.empty(),
        marks=Marks.empty(),
        samples=Samples.empty(),
        allocations=Allocations.empty(),
    )


def _clock(path: Path, header: Header, rows: KinetoRows) -> tuple[int, ClockDomain, list[Problem]]:
    """What to add to every start, and the clock that gives."""
    is_epoch = rows.latest_ns >= _EPOCH_NS
    if header.base_ns is None:
        return 0, ClockDomain.REALTIME if is_epoch else ClockDomain.UNKNOWN, []
    if is_epoch and header.base_ns >= _EPOCH_NS:
        return (
            0,
            ClockDomain.REALTIME,
            [
                Problem(
                    "warning",
                    str(path),
                    1,
                    "event times hold the time of day already: baseTimeNanoseconds was not added",
                )
            ],
        )
    return header.base_ns, ClockDomain.REALTIME, []


def _source(
    header: Header, beside: Sidecar, origin: Origin, clock: ClockDomain, tables: Tables, path: Path
) -> Source:
    pids = np.unique(tables.api.pid if len(tables.api) else tables.ops.pid)
    return Source(
        path=str(path),
        format=name,
        clock=clock,
        host=origin.host,
        rank=origin.rank,
        world_size=header.distributed.world_size,
        pid=int(pids[0]) if len(pids) == 1 else beside.pid,
        point=beside.point,
        has_host_calls=tables.has_calls,
        tool_version=header.tool_version,
        details=(*header.details, *beside.details),
    )


def _header_problems(path: Path, stream: EventStream[Record], header: Header) -> Iterator[Problem]:
    if stream.damage and header.base_ns is None and not stream.is_list:
        yield Problem(
            "warning",
            str(path),
            1,
            "the clock base that newer files state behind their events may be lost with the rest",
        )
    if header.unreadable:
        yield Problem(
            "warning",
            str(path),
            len(header.unreadable),
            f"keys have values of unexpected form: {', '.join(header.unreadable)}",
        )


def _row_problems(path: Path, rows: KinetoRows, tables: Tables) -> Iterator[Problem]:
    """What was repaired, not known or left out among the events."""
    for key, (severity, sentence) in _SENTENCES.items():
        if rows.repairs[key]:
            yield Problem(severity, str(path), rows.repairs[key], sentence)
    if tables.twins:
        yield Problem(
            "warning",
            str(path),
            tables.twins,
            "kernels repeat another in name, stream, times and correlation: kept",
        )
    if tables.without_geometry and len(tables.kernels):
        why = (
            "their launching call is not in the file, is a graph launch, or states none"
            if tables.is_rocm
            else "the file does not state it"
        )
        yield Problem(
            "info", str(path), tables.without_geometry, f"kernels have no launch geometry: {why}"
        )
    if tables.swapped:
        yield Problem(
            "info",
            str(path),
            tables.swapped,
            "kernels state the workgroup's size as `grid` and all work-items as `block`, as an "
            "early torch over rocprofiler-sdk wrote them: read in that order",
        )
    if tables.counted:
        yield Problem(
            "info",
            str(path),
            tables.counted,
            "kernels are known by their counters alone (CUPTI ranges), without times",
        )
    if tables.sizes_dropped:
        yield Problem(
            "info",
            str(path),
            tables.sizes_dropped,
            "copies have a size of one byte that their call did not ask for: size not known",
        )
    yield from _allocation_problems(path, tables)
    yield from left_out(str(path), rows.left_out)


def _allocation_problems(path: Path, tables: Tables) -> Iterator[Problem]:
    for count, sentence in (
        (
            tables.unplaced,
            (
                "allocations name their device by the process's own number, and which of the "
                "file's devices that is cannot be told: left out"
            ),
        ),
        (tables.unstated, "allocations state no total or no device: left out"),
    ):
        if count:
            yield Problem("info", str(path), count, sentence)
