"""The window of each device over time, by what it did and why it was idle: the partition as a
picture, with the same sums.

A window of many pieces is thinned: it is cut into bins of equal width, and each bin keeps how much
of it every kind of time holds, to the nanosecond; what it loses is the order inside of the bin.
Neighbouring bins that one kind fills become one piece.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.pictures.records import KINDS, Strip, Strips
from profharness.analysis.time.counts import device_keys
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.idle_spans import idle_spans
from profharness.analysis.time.timeline import timeline
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import I64, Intervals
from profharness.trace.model import Trace

MOST_DEVICES = 16
MOST_PIECES = 2_000
"""Of one device: a screen has fewer columns of pixels."""
ALL_PIECES = 6_000
"""Of all devices together: each takes some 25 bytes of the page."""


def device_strips(
    trace: Trace, windows: Windows, idle: IdleAnalysis, pieces: int = ALL_PIECES
) -> Strips:
    """The strips of the devices that did work, each in its window, of at most `pieces` together;
    none where it is empty.
    """
    keys = {place: key for place, key in device_keys(trace).items() if len(windows.on(place))}
    shown = list(keys.items())[:MOST_DEVICES]
    if not shown:
        return Strips()
    most = max(min(MOST_PIECES, pieces // len(shown)), len(KINDS))
    return Strips(
        strips=tuple(
            strip(key, [spans[kind] for kind in KINDS], when, most)
            for position, key in shown
            for when in (windows.on(position),)
            for spans in (device_spans(trace, position, when, idle),)
        ),
        left_out=len(keys) - len(shown),
    )


def device_spans(
    trace: Trace, device: int, windows: Intervals, idle: IdleAnalysis
) -> dict[str, Intervals]:
    """The windows of one device as disjoint merged sets, one of each of KINDS."""
    line = timeline(trace, device)
    communication = intervals.subtract(line.communication, line.compute)
    busy = {
        "compute_ns": line.compute,
        "exposed_communication_ns": communication,
        "exposed_copy_ns": intervals.subtract(line.copies, line.kernels),
    }
    return {
        **{name: intervals.intersect(held, windows) for name, held in busy.items()},
        **idle_spans(idle, device, windows),
    }


def strip(device: str, kinds: Sequence[Intervals], windows: Intervals, most: int) -> Strip:
    """One device's strip of at most `most` pieces; `kinds` are disjoint sets in the order of KINDS
    that fill the windows.
    """
    start, end = int(windows.start[0]), int(windows.end[-1])
    present = [place for place, held in enumerate(kinds) if len(held)]
    thinned = sum(len(held) for held in kinds) > most
    columns = (
        _fitting(kinds, present, (start, end), most) if thinned else _exact(kinds, present, start)
    )
    kind, at, width, before, ns = (tuple(column.tolist()) for column in columns)
    return Strip(
        device=device,
        start_ns=start,
        end_ns=end,
        window_ns=windows.total,
        thinned=thinned,
        kind=kind,
        at=at,
        width=width,
        before=before,
        ns=ns,
    )


def _exact(kinds: Sequence[Intervals], present: list[int], start: int) -> list[I64]:
    counts = [len(kinds[place]) for place in present]
    empty = [intervals.EMPTY.start]
    at = np.concatenate([kinds[place].start for place in present] or empty)
    until = np.concatenate([kinds[place].end for place in present] or empty)
    order = np.argsort(at, kind="stable")
    kind = np.repeat(np.array(present, np.int64), counts)[order]
    width = (until - at)[order]
    return [kind, at[order] - start, width, np.zeros(len(kind), np.int64), width]


def _fitting(
    kinds: Sequence[Intervals], present: list[int], ends: tuple[int, int], most: int
) -> list[I64]:
    """As many bins as give at most `most` pieces: many bins hold fewer kinds than there are."""
    least = max(most // len(present), 1)
    for bins in (least * step // 4 for step in range(4 * len(present), 4, -2)):
        columns = _binned(kinds, present, ends, max(bins, 1))
        if len(columns[0]) <= most:
            return columns
    return _binned(kinds, present, ends, least)


def _binned(
    kinds: Sequence[Intervals], present: list[int], ends: tuple[int, int], bins: int
) -> list[I64]:
    start, end = ends
    bins = min(bins, end - start)
    whole, rest = divmod(end - start, bins)
    number = np.arange(bins + 1, dtype=np.int64)
    edges = start + number * whole + number * rest // bins
    held = np.stack(
        [np.diff(intervals.measure_before(kinds[place], edges)) for place in present], axis=1
    )
    before = np.cumsum(held, axis=1) - held
    row, column = np.nonzero(held)
    kind = np.array(present, np.int64)[column]
    ns, width = held[row, column], np.diff(edges)[row]
    full = ns == width
    joins = np.zeros(len(row), np.bool_)
    joins[1:] = full[1:] & full[:-1] & (kind[1:] == kind[:-1]) & (np.diff(row) == 1)
    first = np.flatnonzero(~joins)
    return [
        kind[first],
        edges[row[first]] - start,
        np.add.reduceat(width, first) if len(first) else width,
        before[row, column][first],
        np.add.reduceat(ns, first) if len(first) else ns,
    ]
