"""Figures of each rank by which ranks are compared: how the time of its devices divides, its
ranges, its collectives, and how late it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from profharness.analysis.communication.collectives import Arrivals, described
from profharness.analysis.communication.records import RankCell, RankCells, Skew
from profharness.analysis.time.counts import devices_with_work
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import partition_windows
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

BEHIND = "behind the first rank"
_DEVICE = (
    ("compute", "compute_ns"),
    ("exposed communication", "exposed_communication_ns"),
    ("exposed copies", "exposed_copy_ns"),
    ("idle", "idle_ns"),
)
_RANGES = 8
"""Ranges of the program that a rank has a figure of: those that take longest."""


def rank_cells(
    trace: Trace, windows: Windows, ranks: Sequence[Arrivals], idle: IdleAnalysis
) -> tuple[RankCells, ...]:
    """The ranks of one trace that have a number, in its order."""
    devices: dict[int, list[int]] = {}
    for device in devices_with_work(trace):
        rank = None if device == NULL else trace.devices[device].rank
        if rank is not None:
            devices.setdefault(rank, []).append(device)
    ranges = _ranges(trace, windows)
    found = []
    for one in ranks:
        number = one.rank.removeprefix("rank ")
        if number.isdecimal():
            rank = int(number)
            cells = (
                *_of_devices(idle, windows, devices.get(rank, ())),
                *ranges.get(rank, ()),
                *_of_collectives(one),
            )
            found.append(RankCells(rank=one.rank, cells=cells))
    return tuple(found)


def with_arrivals(ranks: Sequence[RankCells], skew: Skew | None) -> tuple[RankCells, ...]:
    """The same with how late each arrives; nothing where a rank stands for two, or is alone."""
    if len(ranks) < 2 or len({one.rank for one in ranks}) < len(ranks):
        return tuple(ranks) if len(ranks) < 2 else ()
    behind = {} if skew is None else {row.rank: row.mean_behind_ns for row in skew.rows}
    return tuple(
        msgspec.structs.replace(
            one,
            cells=(
                *one.cells,
                RankCell(of="arrival", name=BEHIND, value=behind[one.rank], is_share=False),
            ),
        )
        if one.rank in behind
        else one
        for one in sorted(ranks, key=lambda cells: (len(cells.rank), cells.rank))
    )


def _of_devices(idle: IdleAnalysis, windows: Windows, devices: Sequence[int]) -> Iterator[RankCell]:
    """Idle time is what is known of it, without what may have been unrecorded work."""
    if not devices:
        return
    split = partition_windows(idle.trace, windows, tuple(devices))
    unknown = sum(
        intervals.intersect(idle.not_recorded(device), windows.on(device)).total
        for device in devices
    )
    for name, field in _DEVICE:
        if split.window_ns:
            ns = getattr(split, field) - (unknown if field == "idle_ns" else 0)
            yield RankCell(of="device", name=name, value=ns / split.window_ns)


def _ranges(trace: Trace, windows: Windows) -> dict[int, tuple[RankCell, ...]]:
    """Of each rank the shares of the window that its ranges take, by their names."""
    marks, kind = trace.marks, trace.strings.find("range")
    rows = np.flatnonzero(marks.kind == kind) if kind != NULL else np.empty(0, np.int64)
    total = windows.when.total
    if not len(rows) or not total:
        return {}
    stated = np.array([NULL if one.rank is None else one.rank for one in trace.sources], np.int64)
    rank = np.where(
        stated[marks.source[rows]] == NULL, marks.rank[rows], stated[marks.source[rows]]
    )
    start = marks.start_ns[rows]
    inside = intervals.inside_ns(intervals.lasting(start, marks.dur_ns[rows]), windows.when)
    names, place = np.unique(marks.name[rows], return_inverse=True)
    found = {}
    for one in np.unique(rank[rank != NULL]).tolist():
        sums: I64 = np.bincount(
            place.reshape(-1), weights=np.where(rank == one, inside, 0), minlength=len(names)
        ).astype(np.int64)
        longest = [at for at in np.argsort(-sums, kind="stable")[:_RANGES].tolist() if sums[at] > 0]
        found[one] = tuple(
            RankCell(of="range", name=trace.strings[int(names[at])], value=float(sums[at]) / total)
            for at in longest
        )
    return found


def _of_collectives(rank: Arrivals) -> Iterator[RankCell]:
    """The mean time of each kind of collective."""
    kinds = [described(text).kind for text in rank.texts]
    own = np.array([kinds[what] for what in rank.what.tolist()], np.str_)
    for kind in sorted(set(own.tolist())):
        mean = float(rank.dur[own == kind].mean())
        yield RankCell(of="collective", name=kind, value=mean, is_share=False)
