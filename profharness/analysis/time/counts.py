"""Whole-trace counts, exactly as docs/metrics.md#whole-file-counts defines them: spans and unions
of half-open intervals, in ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.records import DeviceCounts, TraceCounts
from profharness.analysis.time.linking import Links, link_kernels
from profharness.analysis.time.timeless import counted_ranges, no_places, no_times, placed
from profharness.stats import intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Counters, Source, Trace

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


def count(
    trace: Trace, links: Links | None = None, devices: Sequence[DeviceCounts] | None = None
) -> TraceCounts:
    """Counts over all devices: sums, except the span, which goes from the first start to the last
    end.

    `ranks` counts the distinct ranks among the sources, a source without one counting as a rank of
    its own kind; `unlinked_kernels` is None where no source with kernels holds a host call.
    `devices` are the `counts_of_devices`, where they are known. Ranges of CUPTI's profiler are no
    records of kernels.
    """
    ranges = counted_ranges(trace)
    if ranges is not None:
        return count(_without(trace, ranges))
    kernels, copies = trace.kernels, trace.copies
    on_axis = not no_places(trace)
    links = link_kernels(trace) if links is None else links
    per_device = counts_of_devices(trace) if devices is None else devices
    timed, moved = placed(kernels), placed(copies)
    starts = np.concatenate((timed.start_ns, moved.start_ns))
    ends = np.concatenate((timed.start_ns + timed.dur_ns, moved.start_ns + moved.dur_ns))
    judged = links.has_calls
    return TraceCounts(
        pass_name=pass_of(trace),
        kernels=len(kernels),
        copies=len(copies),
        devices=len(per_device),
        streams=len(
            distinct(
                np.concatenate(
                    (
                        _stream_keys(kernels.device, kernels.stream),
                        _stream_keys(copies.device, copies.stream),
                    )
                )
            )
        ),
        ranks=len(
            ranks_of({source.rank for source in _working_sources(trace)}, of_run=_is_run(trace))
        ),
        span_ns=(int(ends.max() - starts.min()) if len(starts) else 0) if on_axis else None,
        busy_ns=sum(device.busy_ns or 0 for device in per_device) if on_axis else None,
        busy_any_ns=sum(device.busy_any_ns or 0 for device in per_device) if on_axis else None,
        sum_kernel_ns=None if no_times(trace) else int(kernels.dur_ns.sum()),
        unlinked_kernels=int(np.sum(judged & ~links.linked))
        if judged.any() or not len(kernels)
        else None,
        graph_launches=int(
            np.sum(patterns.matching(trace.strings, trace.api, patterns.GRAPH_LAUNCH))
        ),
        kernels_in_graphs=int(links.in_graph.sum()),
        distinct_kernels=len(distinct(kernels.name)),
    )


def count_devices(
    trace: Trace, devices: Sequence[DeviceCounts] | None = None
) -> dict[str, DeviceCounts]:
    """The counts of each device that did work, under its key (`device_keys`)."""
    ranges = counted_ranges(trace)
    if ranges is not None:
        return count_devices(_without(trace, ranges))
    return dict(
        zip(
            device_keys(trace).values(),
            counts_of_devices(trace) if devices is None else devices,
            strict=True,
        )
    )


def _without(trace: Trace, kernels: npt.NDArray[np.bool_]) -> Trace:
    """The trace without these kernels, and without counters, which name kernels by their rows."""
    return replace(trace, kernels=trace.kernels.take(~kernels), counters=Counters.empty())


def counts_of_devices(trace: Trace) -> list[DeviceCounts]:
    """The counts of each of `devices_with_work`, in that order."""
    on_axis = not no_places(trace)
    return [_device(trace, device, on_axis=on_axis) for device in devices_with_work(trace)]


def devices_with_work(trace: Trace) -> list[int]:
    """Positions of the devices that ran a kernel or a copy; NULL stands for records that name
    none.
    """
    return sorted(
        {
            int(device)
            for table in (trace.kernels, trace.copies)
            for device in distinct(table.device)
        }
    )


def device_keys(trace: Trace) -> dict[int, str]:
    """How each working device is called: the tool's number for one source, `host/rank/device` for
    several.

    A host or rank that is not known is a dash. Where two devices would share a key (loose files
    without identity), the file's name stands in place of the host; those that share it still (one
    file names a device twice) are numbered.
    """
    working = devices_with_work(trace)
    if len(_device_sources(trace)) <= 1:
        return _numbered({device: _index(trace, device) for device in working})
    keys = {}
    for device in working:
        record = trace.devices[device] if device != NULL else None
        rank = record.rank if record is not None else None
        host = record.host if record is not None else ""
        keys[device] = f"{host or '-'}/{'-' if rank is None else rank}/{_index(trace, device)}"
    taken = Counter(keys.values())
    for device in [device for device in working if taken[keys[device]] > 1]:
        keys[device] = f"{_first_file(trace, device)}/{keys[device].split('/', 1)[1]}"
    return _numbered(keys)


def _numbered(keys: dict[int, str]) -> dict[int, str]:
    """The keys, with ` (2)` and so on behind those that stood before: the figures of one device
    must not take the place of another's.
    """
    taken: set[str] = set()
    for device, key in keys.items():
        number, told = 1, key
        while told in taken:
            number += 1
            told = f"{key} ({number})"
        keys[device] = told
        taken.add(told)
    return keys


def pass_of(trace: Trace) -> str | None:
    """The pass of the sources that hold device work (all sources where none does); None for loose
    files.
    """
    others = (trace.copies, trace.sources)
    return trace.kernels.kept((pass_of,), others, lambda: _pass_of(trace))


def _pass_of(trace: Trace) -> str | None:
    names = sorted({source.pass_name for source in _working_sources(trace) if source.pass_name})
    return ", ".join(names) or None


def _device(trace: Trace, device: int, *, on_axis: bool) -> DeviceCounts:
    if not on_axis:
        return DeviceCounts(
            kernels=int((trace.kernels.device == device).sum()),
            busy_ns=None,
            busy_any_ns=None,
            span_ns=None,
        )
    spans = [
        intervals.lasting(table.start_ns[rows], table.dur_ns[rows])
        for table in (placed(trace.kernels), placed(trace.copies))
        for rows in [table.device == device]
    ]
    busy, copying = (intervals.merge(lasting) for lasting in spans)
    some = [lasting for lasting in spans if len(lasting)]
    return DeviceCounts(
        kernels=int((trace.kernels.device == device).sum()),
        busy_ns=busy.total,
        busy_any_ns=intervals.union(busy, copying).total if len(copying) else busy.total,
        span_ns=max(int(lasting.end.max()) for lasting in some)
        - min(int(lasting.start.min()) for lasting in some)
        if some
        else 0,
    )


def _stream_keys(device: I32, stream: I32) -> I64:
    """Streams as the trace numbers them; records without one count as one stream of their
    device.
    """
    return np.where(stream != NULL, stream.astype(np.int64), -2 - device.astype(np.int64))


def _device_sources(trace: Trace) -> list[int]:
    return [
        int(position)
        for position in distinct(np.concatenate((trace.kernels.source, trace.copies.source)))
        if position != NULL
    ]


def ranks_of(ranks: Collection[int | None], *, of_run: bool) -> frozenset[int | None]:
    """The ranks among those of sources. In a run whose processes say theirs, one without is the
    launcher's own, or telemetry, and no rank; among loose files it counts as one.
    """
    named = frozenset(ranks) - {None}
    return named if of_run and named else frozenset(ranks)


def _is_run(trace: Trace) -> bool:
    return any(source.pass_name for source in trace.sources)


def _working_sources(trace: Trace) -> list[Source]:
    working = [trace.sources[position] for position in _device_sources(trace)]
    return working or list(trace.sources)


def _index(trace: Trace, device: int) -> str:
    return trace.devices[device].index if device != NULL else "unknown"


def _first_file(trace: Trace, device: int) -> str:
    for table in (trace.kernels, trace.copies):
        rows = np.flatnonzero(table.device == device)
        if len(rows):
            return PurePath(trace.sources[int(table.source[rows[0]])].path).name
    return "-"
