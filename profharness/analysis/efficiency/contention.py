"""The same kernel beside collectives or copies against the same kernel alone
(docs/metrics.md#contention).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from profharness.analysis.efficiency.recorded import kernels_of
from profharness.analysis.kernels.categories import function_name
from profharness.analysis.kernels.roofline import LONGEST_NAME
from profharness.analysis.measurement import Measurement
from profharness.analysis.time.timeline import is_communication, timeline
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.stats.bootstrap import quantile_interval
from profharness.trace.columns.keys import coded, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64
from profharness.units import format_ns, format_share

ENOUGH = 10
"""Kernels of a group that are needed on either side. Up to so many the upper end of the interval of
a median by ranks is the longest time: with few of them the interval is too wide to tell anything.
"""
BESIDE, CROWDED = 0.5, 0.05
"""A kernel counts as beside a collective or copy where that runs for at least half of its time, as
alone where none does; not at all where another compute kernel shares more than a twentieth of it.
"""
STEADY = 0.25
"""The most that the middle half of a group's times alone may span, over their median: times that
scatter more than that are of different work.
"""
NOTABLE_LOSS = 0.01
"""Of the time of compute kernels: what the company has to cost to be worth naming."""


@dataclass(frozen=True, eq=False)
class Medians:
    """Per group: how many times, their median with a 95 % interval by ranks, and the span of the
    middle half, in ns.
    """

    count: I64
    median: F64
    low: F64
    high: F64
    middle: F64


@dataclass(frozen=True, eq=False)
class Company:
    """Groups of the same work that ran often enough beside others and alone. `first` is a kernel of
    each group.
    """

    first: I64
    beside: Medians
    alone: Medians

    @property
    def ratio(self) -> tuple[float, float, float]:
        """How many times as long the kernels took beside others, with its 95 % interval; each group
        weighs as many times as it ran beside others.
        """
        weight = self.beside.count
        beside, alone = (float((weight * side.median).sum()) for side in (self.beside, self.alone))
        spread = sqrt(
            sum(
                float(((weight * (side.high - side.low) / 2) ** 2).sum()) / total**2
                for side, total in ((self.beside, beside), (self.alone, alone))
            )
        )
        ratio = beside / alone
        return ratio, ratio * (1 - spread), ratio * (1 + spread)

    @property
    def lost_ns(self) -> F64:
        """Per group what its kernels beside others took longer than as many alone."""
        return self.beside.count * (self.beside.median - self.alone.median)


def contention(m: Measurement) -> Iterator[Finding]:
    """Compute kernels that run longer while collectives or copies run on their device."""
    found = company(m)
    if found is None:
        return
    ratio, low, high = found.ratio
    talking = is_communication(m.trace.strings, m.trace.kernels)
    computing = int(m.kernel_ns[~talking].sum())
    lost = float(found.lost_ns.sum())
    if low <= 1.0 or lost < NOTABLE_LOSS * computing:
        return
    top = int(np.argmax(found.lost_ns))
    kernel = m.trace.strings[int(m.trace.kernels.name[found.first[top]])]
    beside, alone = found.beside, found.alone
    yield finding(
        "contention",
        f"kernels take {ratio:.3g} times as long (95 % interval {low:.3g} to {high:.3g}) beside "
        f"collectives or copies as the same kernels alone ({len(found.first)} kinds, "
        f"{int(beside.count.sum())} beside, {int(alone.count.sum())} alone), which costs "
        f"{format_share(lost / computing)} of compute kernel time; most: "
        f"{function_name(kernel)[:LONGEST_NAME]}, median {format_ns(beside.median[top])} beside "
        f"({int(beside.count[top])}), {format_ns(alone.median[top])} alone "
        f"({int(alone.count[top])})",
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        kinds=len(found.first),
        beside=int(beside.count.sum()),
        alone=int(alone.count.sum()),
        lost_ns=round(lost),
        lost_share=lost / computing,
    )


def company(m: Measurement) -> Company | None:
    """The groups of kernels of the windows that can be compared; None where there are none."""
    if m.timeless or not m.facts.timed or not len(m.trace.kernels):
        return None
    shared, crowded = _shares(m)
    state = np.where(shared >= BESIDE, 1, np.where(shared == 0, 0, NULL))
    rows = np.flatnonzero((state != NULL) & (crowded <= CROWDED) & (m.kernel_ns > 0))
    rows = rows[_told_apart(m, rows)]
    if not len(rows) or not (state[rows] == 1).any():
        return None
    _, group = coded(_key(m, rows))
    counts = [np.bincount(group[state[rows] == side], minlength=len(group)) for side in (0, 1)]
    enough = (counts[0] >= ENOUGH) & (counts[1] >= ENOUGH)
    rows, group = rows[enough[group]], group[enough[group]]
    if not len(rows):
        return None
    _, group = coded(group)
    groups, beside = int(group.max()) + 1, state[rows] == 1
    first = np.empty(groups, np.int64)
    first[group] = rows
    sides = [
        _medians(m.trace.kernels.dur_ns[rows[side]], group[side], groups)
        for side in (beside, ~beside)
    ]
    steady = sides[1].middle <= STEADY * sides[1].median
    if not steady.any():
        return None
    return Company(first[steady], _of(sides[0], steady), _of(sides[1], steady))


def _shares(m: Measurement) -> tuple[F64, F64]:
    """Per kernel the share of its time in which a collective or copy runs on its device, and in
    which another compute kernel does; NaN for collectives and kernels without a duration.
    """
    trace, kernels = m.trace, m.trace.kernels
    shared, crowded = (np.full(len(kernels), np.nan) for _ in range(2))
    talking = is_communication(trace.strings, kernels)
    for device in m.devices:
        line = timeline(trace, device)
        rows = np.flatnonzero((kernels.device == device) & ~talking & (kernels.dur_ns > 0))
        copies = trace.copies
        through = (copies.src_device == device) | (copies.dst_device == device)
        moved = intervals.lasting(copies.start_ns[through], copies.dur_ns[through])
        others = intervals.union(line.communication, line.copies, moved)
        spans = intervals.lasting(kernels.start_ns[rows], kernels.dur_ns[rows])
        if not len(others) or not len(rows):
            continue
        shared[rows] = intervals.inside_ns(spans, others) / kernels.dur_ns[rows]
        twice = intervals.overlapping(spans)
        crowded[rows] = intervals.inside_ns(spans, twice) / kernels.dur_ns[rows]
    return shared, crowded


def _told_apart(m: Measurement, rows: I64) -> npt.NDArray[np.bool_]:
    """Which kernels are known well enough to be called the same: their geometry is recorded, and
    the shapes of their operator; without shapes those whose number of workgroups follows from the
    size of their tensors (a product's says nothing of the extent that it sums over).
    """
    kernels, ops = m.trace.kernels, m.trace.ops
    streaming = kernels_of(kernels.name[rows], m.trace.strings, "elementwise", "copy")
    if len(ops):
        op = kernels.op[rows]
        streaming |= (op != NULL) & (ops.shapes[op] != NULL)
    known: npt.NDArray[np.bool_] = streaming & (kernels.workgroups[rows] != NULL)
    return known


def _key(m: Measurement, rows: I64) -> I64:
    """Equal for kernels that do the same work as far as the trace tells."""
    kernels, ops = m.trace.kernels, m.trace.ops
    columns = [
        getattr(kernels, name)[rows]
        for name in (
            "name",
            "device",
            "workgroups",
            "workgroup_count_x",
            "workgroup_count_y",
            "workgroup_count_z",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
        )
    ]
    if len(ops):
        op = kernels.op[rows]
        texts = (ops.name, ops.shapes, ops.dtype, ops.concrete, ops.strides)
        columns += [np.where(op == NULL, NULL, column[op]) for column in texts]
    return pack(columns)


def _medians(times: I64, group: I64, groups: int) -> Medians:
    """Medians of all groups, each of which has a time."""
    order = np.lexsort((times, group))
    ordered = times[order].astype(np.float64)
    count = np.bincount(group, minlength=groups)
    start = np.cumsum(count) - count

    def at(place: I64) -> F64:
        times_at: F64 = ordered[start + place]
        return times_at

    median = (at((count - 1) // 2) + at(count // 2)) / 2
    middle = at(3 * count // 4) - at(count // 4)
    ends = [quantile_interval(one, 0.5) for one in np.split(ordered, start[1:])]
    low, high = np.array(ends).T
    return Medians(count, median, low, high, middle)


def _of(side: Medians, chosen: npt.NDArray[np.bool_]) -> Medians:
    return Medians(
        side.count[chosen],
        side.median[chosen],
        side.low[chosen],
        side.high[chosen],
        side.middle[chosen],
    )
