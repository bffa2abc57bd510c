"""Copies by direction and size, with their bandwidth (docs/metrics.md#copies)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.measurement import Measurement
from profharness.analysis.memory.records import CopyRow
from profharness.analysis.time.timeline import timeline
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import coded, distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

_KIB = 1 << 10
SIZE_CLASSES = (0, *(4 * _KIB * 16**power for power in range(6)))
"""Where classes of size begin, in bytes: below 4 KiB, then up to 16 times as much each."""
_HOST_MEMORY = ("", "pageable", "pinned", "managed")
_PLACES = re.compile(r"\((?P<source>\w+) -> (?P<target>\w+)\)")
# what the runtime of ROCm copies with: kernels of its own, and copies that old tools stamp as such
_KERNEL = re.compile(r"^(__amd_rocclr_(copy|fill)|MEMORY_COPY_)")
_KERNEL_DIRECTIONS = (
    ("HOST_TO_DEVICE", "h2d"),
    ("DEVICE_TO_HOST", "d2h"),
    ("DEVICE_TO_DEVICE", "d2d"),
    ("__amd_rocclr_fill", "fill"),
)


def copy_rows(m: Measurement) -> tuple[CopyRow, ...]:
    """The copies that start in the windows, those that take longest first; none where they lie on
    no time axis.
    """
    if m.timeless or not len(m.windows.everywhere):
        return ()
    return _ordered([*_of_engines(m), *_of_kernels(m)])


def merge_copy_rows(tables: Iterable[Sequence[CopyRow]]) -> tuple[CopyRow, ...]:
    """The rows of several files as one table: sums, and of the medians that of the files, each
    counted with its copies.
    """
    alike: dict[tuple[object, ...], list[CopyRow]] = {}
    for row in (row for table in tables for row in table):
        key = (row.direction, row.host_memory, row.kernel, row.least_bytes)
        alike.setdefault(key, []).append(row)
    return _ordered([_added(rows) for rows in alike.values()])


def _ordered(rows: Sequence[CopyRow]) -> tuple[CopyRow, ...]:
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                -row.total_ns,
                row.direction,
                row.host_memory,
                row.kernel,
                -1 if row.least_bytes is None else row.least_bytes,
            ),
        )
    )


def _added(rows: Sequence[CopyRow]) -> CopyRow:
    first, total = rows[0], sum(row.total_ns for row in rows)
    size = None if first.bytes is None else sum(row.bytes or 0 for row in rows)
    blocking = [row.blocking_calls for row in rows if row.blocking_calls is not None]
    return msgspec.structs.replace(
        first,
        calls=sum(row.calls for row in rows),
        bytes=size,
        total_ns=total,
        busy_ns=sum(row.busy_ns for row in rows),
        exposed_ns=None if first.exposed_ns is None else sum(row.exposed_ns or 0 for row in rows),
        window_ns=sum(row.window_ns for row in rows),
        bytes_per_s=None if all(row.bytes_per_s is None for row in rows) else _rate(size, total),
        bytes_per_s_median=_median_of(rows),
        linked_calls=sum(row.linked_calls for row in rows),
        blocking_calls=sum(blocking) if blocking else None,
    )


def _median_of(rows: Sequence[CopyRow]) -> float | None:
    medians = sorted(
        (row.bytes_per_s_median, row.calls) for row in rows if row.bytes_per_s_median is not None
    )
    half, seen = sum(calls for _, calls in medians) / 2, 0
    for median, calls in medians:
        seen += calls
        if seen >= half:
            return median
    return None


def _rate(size: int | None, total_ns: int) -> float | None:
    """B/s; None where the size is not known or no time passed."""
    return None if size is None or not total_ns else size * 1e9 / total_ns


def size_classes(sizes: I64) -> I64:
    """Which of SIZE_CLASSES each size belongs to; NULL where it is not known."""
    found = np.searchsorted(np.array(SIZE_CLASSES, np.int64), sizes, "right") - 1
    return np.where(sizes == NULL, NULL, found)


def host_memory(trace: Trace) -> I64:
    """Position in `_HOST_MEMORY` of the host's side of each copy, by its name."""
    return per_text(trace.strings, trace.copies.name, _memory_of)


def _memory_of(name: str) -> int:
    match = _PLACES.search(name)
    if match is None:
        return 0
    sides = {match["source"].lower(), match["target"].lower()}
    return next((at for at, memory in enumerate(_HOST_MEMORY) if memory in sides), 0)


def _of_engines(m: Measurement) -> Iterator[CopyRow]:
    copies = m.trace.copies
    inside = np.flatnonzero(m.windows.contains(copies.start_ns, copies.device))
    if not len(inside):
        return
    classes, memory = size_classes(copies.bytes), host_memory(m.trace)
    used, group = coded(pack([copies.kind[inside], memory[inside], classes[inside]]))
    for number in range(len(used)):
        rows = inside[group == number]
        at = int(rows[0])
        yield _row(
            m,
            rows,
            direction=m.trace.strings[int(copies.kind[at])] if copies.kind[at] != NULL else "",
            memory=_HOST_MEMORY[int(memory[at])],
            size_class=int(classes[at]),
        )


def _row(m: Measurement, rows: I64, *, direction: str, memory: str, size_class: int) -> CopyRow:
    copies = m.trace.copies
    spans = intervals.lasting(copies.start_ns[rows], copies.dur_ns[rows])
    busy, exposed = _union_ns(m, spans, copies.device[rows])
    total = int(copies.dur_ns[rows].sum())
    known = size_class != NULL
    size = int(copies.bytes[rows].sum()) if known else None
    # one byte is what roctracer writes where it knows no size, and its time is all latency
    rated = rows[(copies.bytes[rows] > 1) & (copies.dur_ns[rows] > 0)]
    rates = copies.bytes[rated] * 1e9 / copies.dur_ns[rated]
    linked, blocking = _blocking(m, rows)
    return CopyRow(
        direction=direction or "unknown",
        host_memory=memory,
        least_bytes=SIZE_CLASSES[size_class] if known else None,
        below_bytes=(*SIZE_CLASSES[1:], None)[size_class] if known else None,
        calls=len(rows),
        bytes=size,
        total_ns=total,
        busy_ns=busy,
        exposed_ns=exposed,
        window_ns=m.window_ns,
        bytes_per_s=_rate(size, total) if len(rated) else None,
        bytes_per_s_median=float(np.median(rates)) if len(rated) else None,
        linked_calls=linked,
        blocking_calls=blocking,
    )


def _blocking(m: Measurement, rows: I64) -> tuple[int, int | None]:
    """How many of these copies have a launching call, and how many of those calls returned only
    when the copy had ended.
    """
    call, copies = m.work.call[m.work.kernels + rows], m.trace.copies
    linked = call != NULL
    if not linked.any():
        return 0, None
    api, rows = m.work.api, rows[linked]
    returned = (api.start_ns + api.dur_ns)[call[linked]]
    ended = copies.start_ns[rows] + copies.dur_ns[rows]
    return int(linked.sum()), int((returned >= ended).sum())


def _union_ns(m: Measurement, spans: Intervals, device: npt.NDArray[np.int32]) -> tuple[int, int]:
    """The union of the spans in the windows, and what of it no kernel covers, summed over
    devices.
    """
    busy = exposed = 0
    for place in distinct(device).tolist():
        own = device == place
        union = intervals.intersect(
            intervals.merge(Intervals(spans.start[own], spans.end[own])), m.windows.on(place)
        )
        busy += union.total
        exposed += intervals.subtract(union, timeline(m.trace, place).kernels).total
    return busy, exposed


def _of_kernels(m: Measurement) -> Iterator[CopyRow]:
    kernels, strings = m.trace.kernels, m.trace.strings
    names = distinct(kernels.name)
    copying = {int(code): name for code in names if _KERNEL.match(name := strings[int(code)])}
    if not copying:
        return
    inside = m.windows.contains(kernels.start_ns, kernels.device)
    for code, name in copying.items():
        rows = np.flatnonzero(inside & (kernels.name == code))
        if not len(rows):
            continue
        spans = intervals.lasting(kernels.start_ns[rows], kernels.dur_ns[rows])
        yield CopyRow(
            direction=next((kind for part, kind in _KERNEL_DIRECTIONS if part in name), "unknown"),
            kernel=function_name(name),
            calls=len(rows),
            total_ns=int(kernels.dur_ns[rows].sum()),
            busy_ns=_union_ns(m, spans, kernels.device[rows])[0],
            window_ns=m.window_ns,
        )
