"""What a hotspot table says of each kernel beyond its times: fill, occupancy, achieved FLOP/s and
bytes per second (docs/metrics.md#hotspots).

Means over the kernel's calls, weighted by time; None where less than 90 % of a kernel's time is
known.
"""

from __future__ import annotations

import msgspec
import numpy as np

from profharness.analysis.kernels.accelerators import accelerator
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.filling import NEEDED_COVERAGE
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.records import Hotspots
from profharness.stats.intervals import F64, I64
from profharness.trace.columns.keys import coded, distinct, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, Trace


def with_rates(table: Hotspots, facts: KernelFacts) -> Hotspots:
    """The table of one trace with these columns filled in, for rows by kernel; by op with the
    inputs; any other table as it is.
    """
    kernels, strings = facts.trace.kernels, facts.trace.strings
    if table.by == "op":
        return _with_inputs(table, facts.trace)
    if table.by != "kernel" or not len(kernels):
        return table
    codes, place = coded(kernels.name)
    lengths = kernels.dur_ns.astype(np.float64)
    whole = np.bincount(place, weights=lengths).astype(np.float64)
    fill, occupancy = (
        _mean(place, column, lengths, whole)
        for column in (fill_of_kernels(facts.trace), facts.residency.occupancy)
    )
    timed = facts.timed
    flops, moved = (
        _mean(
            place,
            column / np.maximum(lengths, 1) * 1e9 if timed else np.full(len(kernels), np.nan),
            lengths,
            whole,
        )
        for column in (facts.work.flops, facts.rates.moved)
    )
    number = {strings[int(code)]: position for position, code in enumerate(codes)}

    def value(column: F64, name: str) -> float | None:
        rate = column[number[name]] if name in number else np.nan
        return float(rate) if np.isfinite(rate) else None

    rows = tuple(
        msgspec.structs.replace(
            row,
            fill=value(fill, row.name),
            occupancy=value(occupancy, row.name),
            flops_per_s=value(flops, row.name),
            bytes_per_s=value(moved, row.name),
        )
        for row in table.rows
    )
    return msgspec.structs.replace(table, rows=rows)


def _with_inputs(table: Hotspots, trace: Trace) -> Hotspots:
    """Each op's rows with the shapes and types of inputs with which it was called most often (of
    equally many, the first met).
    """
    ops, strings = trace.ops, trace.strings
    with_shapes = np.flatnonzero(ops.shapes != NULL)
    if not len(with_shapes):
        return table
    name, shapes, types = ops.name[with_shapes], ops.shapes[with_shapes], ops.dtype[with_shapes]
    first, group = first_rows(pack([name, shapes, types]))
    order = np.lexsort((-first, np.bincount(group)))
    most = {
        strings[int(name[row])]: row for row in first[order].tolist()
    }  # the most frequent is written last

    def text(column: I32, row: int) -> str | None:
        return strings[int(column[row])] if column[row] != NULL else None

    rows = tuple(
        msgspec.structs.replace(
            row, shapes=text(shapes, most[row.name]), dtypes=text(types, most[row.name])
        )
        if row.name in most
        else row
        for row in table.rows
    )
    return msgspec.structs.replace(table, rows=rows)


def fill_of_kernels(trace: Trace) -> F64:
    """The share of its device's compute units that each kernel's workgroups can occupy; NaN where
    not known.
    """
    kernels = trace.kernels
    fill = np.full(len(kernels), np.nan)
    for device in distinct(kernels.device).tolist():
        hardware = accelerator(trace, device)
        if hardware is not None and hardware.compute_units:
            rows = (kernels.device == device) & (kernels.workgroups > 0)
            fill[rows] = np.minimum(kernels.workgroups[rows] / hardware.compute_units, 1.0)
    return fill


def _mean(place: I64, values: F64, weight: F64, whole: F64) -> F64:
    """Weighted mean per group; NaN where too little of the group's weight, `whole`, is known."""
    known = np.isfinite(values)
    if not known.all():
        place, values, weight = place[known], values[known], weight[known]
    covered = np.bincount(place, weights=weight, minlength=len(whole))
    total = np.bincount(place, weights=values * weight, minlength=len(whole))
    enough = (covered > 0) & (covered >= NEEDED_COVERAGE * whole)
    return np.where(enough, total / np.where(covered > 0, covered, 1.0), np.nan)
