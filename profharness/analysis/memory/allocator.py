"""What allocators held, for whom, and how it grew (docs/metrics.md#memory)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.memory.alive import (
    Owners,
    alive_after,
    by_module,
    by_operator,
    by_process,
)
from profharness.analysis.memory.held import device_name, held
from profharness.analysis.memory.levels import by_batch, of_uses
from profharness.analysis.memory.records import AllocatorCall, Memory, MemoryUse
from profharness.analysis.time.steps import Step
from profharness.stats import intervals
from profharness.stats.bootstrap import student95
from profharness.stats.estimate import Estimate
from profharness.trace.call_names import matching
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64

_NO_ADDRESSES = "addresses of allocations, which torch records from 1.12 on"
_NO_RELEASES = "the releases of all that is recorded as taken: the file lacks some"
_POINTS = 400
"""Of a curve: what a picture shows of more, nobody sees."""
_LEAST_CHANGES = 3
"""Differences between ends of steps that an interval of their mean needs."""
_CALLS = re.compile(
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|ExtMalloc)"
    r"|^cuMem(Alloc|Free|Create|Release|Map|Unmap)"
)


def memory(m: Measurement) -> Memory | None:
    """What the trace says of allocators; None where it recorded neither them nor calls of the
    driver's.
    """
    table = m.trace.allocations
    calls = _calls(m)
    groups = by_process(table) if len(m.on_host) else []
    if not groups and not calls:
        return None
    owners = (by_operator(m.trace), by_module(m.trace)) if groups else None
    uses = [_use(m, rows, owners) for rows in groups] if owners else []
    found = tuple(sorted((use for use in uses if use is not None), key=_place))
    return Memory(
        window_ns=m.on_host.total, uses=found, calls=calls, by_batch=by_batch(of_uses(found))
    )


def _place(use: MemoryUse) -> tuple[bool, str, int]:
    """The host first; of one place in order of time."""
    return use.device is not None, use.device or "", use.peak_ns


def merge_memory(parts: Sequence[tuple[str, Memory | None]]) -> Memory | None:
    """That of several files, by their labels: uses beside one another, calls added."""
    found = [(label, part) for label, part in parts if part is not None]
    if not found:
        return None
    calls: dict[str, AllocatorCall] = {}
    for _, part in found:
        for call in part.calls:
            known = calls.get(call.name)
            calls[call.name] = (
                call
                if known is None
                else AllocatorCall(
                    name=call.name,
                    calls=known.calls + call.calls,
                    total_ns=known.total_ns + call.total_ns,
                )
            )
    uses = tuple(
        msgspec.structs.replace(use, file=label) for label, part in found for use in part.uses
    )
    return Memory(
        window_ns=sum(part.window_ns for _, part in found),
        uses=uses,
        calls=_in_order(calls.values()),
        by_batch=by_batch(of_uses(uses)),
    )


def _in_order(calls: Iterable[AllocatorCall]) -> tuple[AllocatorCall, ...]:
    return tuple(sorted(calls, key=lambda call: (-call.total_ns, call.name)))


def _calls(m: Measurement) -> tuple[AllocatorCall, ...]:
    api = m.trace.api
    rows: I64 = np.flatnonzero(matching(m.trace.strings, api, _CALLS))
    if not len(rows) or not len(m.on_host):
        return ()
    inside = intervals.inside_ns(intervals.lasting(api.start_ns[rows], api.dur_ns[rows]), m.on_host)
    rows, inside = rows[inside > 0], inside[inside > 0]
    names, group = coded(api.name[rows])
    return _in_order(
        AllocatorCall(
            name=m.trace.strings[int(code)],
            calls=int((group == at).sum()),
            total_ns=int(inside[group == at].sum()),
        )
        for at, code in enumerate(names)
    )


def _use(m: Measurement, rows: I64, owners: tuple[Owners, Owners | None]) -> MemoryUse | None:
    table, own = m.trace.allocations, held(m, rows)
    if not own.inside.any():
        return None
    candidates = np.flatnonzero(own.inside)
    peak = int(candidates[np.argmax(own.allocated[candidates])])
    began = int(m.on_host.start[0])
    peak_at = max(int(own.at[peak]), began)
    in_window = rows[intervals.contains(m.on_host, own.at)]
    taken = in_window[table.is_release[in_window] == 0]
    addressed = bool((table.address[rows] != NULL).all())
    alive = alive_after(table, rows[: peak + 1]) if addressed else rows[:0]
    before = int(own.allocated[peak]) - int(table.bytes[alive].sum())
    matched = addressed and before >= 0
    reserved = table.reserved[rows]
    point = m.trace.sources[int(table.source[rows[0]])].point
    device = int(table.device[rows[0]])
    reserves = device != NULL and bool((reserved[own.inside] != NULL).all())
    kept = candidates[_thinned(own.allocated[candidates])]
    steps = _steps(m)
    return MemoryUse(
        device=device_name(m.trace, device),
        point=point,
        pid=int(table.pid[rows[0]]) if table.pid[rows[0]] != NULL else None,
        capacity_bytes=m.trace.devices[device].memory_bytes if device != NULL else None,
        peak_bytes=int(own.allocated[peak]),
        least_bytes=int(own.allocated[own.inside].min()),
        peak_ns=peak_at - began,
        step=next((s.label for s in m.steps if s.start_ns <= peak_at < s.end_ns), None),
        reserved_bytes=int(reserved[peak]) if reserves else None,
        reserved_peak_bytes=int(reserved[own.inside].max()) if reserves else None,
        before_bytes=before if matched else None,
        allocations=len(taken),
        releases=len(in_window) - len(taken),
        allocated_bytes=int(table.bytes[taken].sum()),
        steps=_steps_of(m, point) or None,
        batch_size=_batch_size(m),
        growth_bytes=None if steps is None else growth(steps, own.at, own.allocated),
        operators=owners[0].rows(table, taken, alive, before) if matched else (),
        modules=owners[1].rows(table, taken, alive, before) if matched and owners[1] else (),
        needs="" if matched else _NO_RELEASES if addressed else _NO_ADDRESSES,
        at_ns=tuple(np.maximum(own.at[kept] - began, 0).tolist()),
        allocated=tuple(own.allocated[kept].tolist()),
        reserved=tuple(reserved[kept].tolist()) if reserves else (),
    )


def _steps_of(m: Measurement, point: str) -> int:
    """The steps in the window, of a file of one point those of the point."""
    if not point:
        return m.windows.steps
    starts = [step.start_ns for step in m.steps if step.point == point]
    return int(intervals.contains(m.on_host, np.array(starts, np.int64)).sum())


def _batch_size(m: Measurement) -> int | None:
    """The items of each step in the window, where all its marks say one number."""
    items = {
        step.items
        for step in m.steps
        if intervals.contains(m.on_host, np.array([step.start_ns]))[0]
    }
    return items.pop() if len(items) == 1 else None


def _steps(m: Measurement) -> list[Step] | None:
    """The steps, where they are of one process."""
    return m.steps if len({step.process for step in m.steps}) == 1 else None


def growth(steps: Sequence[Step], at: I64, allocated: I64) -> Estimate | None:
    """The mean change of what is held from the end of one step to that of the next, with its 95 %
    interval; None with fewer than four steps.
    """
    ends = np.sort(np.array([step.end_ns for step in steps], np.int64))
    row = np.searchsorted(at, ends, "right") - 1
    changes = np.diff(allocated[row[row >= 0]].astype(np.float64))
    if len(changes) < _LEAST_CHANGES:
        return None
    mean = float(changes.mean())
    half = student95(len(changes) - 1) * float(changes.std(ddof=1)) / math.sqrt(len(changes))
    return Estimate(value=mean, low=mean - half, high=mean + half)


def _thinned(values: I64) -> I64:
    """Which values a curve keeps: all, or the first, the last, and the lowest and highest of equal
    stretches.
    """
    if len(values) <= _POINTS:
        return np.arange(len(values))
    parts = np.array_split(np.arange(len(values)), _POINTS // 2)
    ends = [part[at] for part in parts for at in (values[part].argmin(), values[part].argmax())]
    return np.unique(np.array([0, len(values) - 1, *ends], np.int64))
