"""What each operator and kernel of a trace adds to the rows against the ceilings
(docs/metrics.md#device-use).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.columns import fill_of_kernels
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.device_time import lasting
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.rows import RowWork
from profharness.analysis.operators.sums import (
    LIMITERS,
    Placed,
    at_the_ceilings,
    limits_of,
    owners_of,
    sums_of,
)
from profharness.analysis.time.timeline import is_communication
from profharness.analysis.use.sums import RowSums, reached
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

Mask = npt.NDArray[np.bool_]


def of_operators(facts: KernelFacts) -> tuple[RowSums, RowSums]:
    """Operators by name, and by name, shapes and types of their inputs. There must be operators."""
    rows = facts.operators
    assert rows is not None
    counted = np.isfinite(rows.flops) | np.isfinite(rows.low_bytes)
    placed = at_the_ceilings(facts, counted)
    by_name, by_shapes = (
        _of_operators(facts, rows, (counted, placed), shapes=shapes) for shapes in (False, True)
    )
    return by_name, by_shapes


def _of_operators(
    facts: KernelFacts, rows: RowWork, known: tuple[Mask, Placed], *, shapes: bool
) -> RowSums:
    """`known` says which operators' work is known, and what it takes."""
    trace, (counted, placed) = facts.trace, known
    ops = trace.ops
    columns = (ops.name, ops.shapes, ops.dtype) if shapes else (ops.name,)
    first, group = first_rows(pack(columns))
    groups = len(first)
    owners, nested = owners_of(trace, group, groups), np.zeros(groups, np.int64)
    sums = sums_of(facts, owners, nested, placed=placed)  # nested times are not shown here
    timed = np.where(counted, placed[0], 0) if facts.timed else np.zeros(len(ops), np.int64)
    return RowSums(
        keys=tuple(
            (
                trace.strings[int(ops.name[row])],
                _text(trace, int(ops.shapes[row])) if shapes else "",
                _text(trace, int(ops.dtype[row])) if shapes else "",
            )
            for row in first.tolist()
        ),
        calls=np.bincount(group, minlength=groups),
        device=sums.device,
        nested=sums.worked,
        measured=sums.measured,
        least=sums.least,
        by_flops=sums.by_flops,
        by_bytes=sums.by_bytes,
        limits=sums.limits,
        inner=_limits_inside(facts, counted, group, groups),
        fill=np.zeros(groups),
        fill_ns=np.zeros(groups, np.int64),
        **reached(group, groups, (rows.flops, rows.low_bytes), timed),
    )


def _limits_inside(facts: KernelFacts, counted: Mask, group: I64, groups: int) -> I64:
    """Kernel time by limiter of the groups whose known work the kernels do, themselves or through
    operators nested in them.
    """
    trace = facts.trace
    holder = nests(trace.ops).nearest(counted)
    rows = np.flatnonzero(trace.kernels.op != NULL)
    owner = holder[trace.kernels.op[rows]]
    return limits_of(facts, rows[owner != NULL], group[owner[owner != NULL]], groups)


def _text(trace: Trace, code: int) -> str:
    return "" if code == NULL else trace.strings[code]


def of_kernels(facts: KernelFacts) -> RowSums:
    """Kernels by name; collectives are left out, and all where their times are set against
    nothing.
    """
    trace, rates = facts.trace, facts.rates
    rows = np.flatnonzero(~is_communication(trace.strings, trace.kernels) & facts.timed)
    codes, group = coded(trace.kernels.name[rows])
    groups, ns = len(codes), lasting(trace.kernels)[rows]
    by_flops, by_bytes = rates.compute_share[rows], rates.bandwidth_share[rows]
    fill = fill_of_kernels(trace)[rows]
    judged = np.isfinite(by_flops) | np.isfinite(by_bytes)

    def time(lengths: I64) -> I64:
        return np.bincount(group, weights=lengths, minlength=groups).astype(np.int64)

    return RowSums(
        keys=tuple((trace.strings[code], "", "") for code in codes.tolist()),
        calls=np.bincount(group, minlength=groups),
        device=time(ns),
        nested=np.zeros(groups, np.int64),
        measured=time(np.where(judged, ns, 0)),
        # per call the larger of the two, then summed: a kernel may be near either ceiling
        least=_part(np.fmax(by_flops, by_bytes), ns, group, groups),
        by_flops=_part(by_flops, ns, group, groups),
        by_bytes=_part(by_bytes, ns, group, groups),
        limits=limits_of(facts, rows, group, groups),
        inner=np.zeros((groups, len(LIMITERS)), np.int64),
        fill=_part(fill, ns, group, groups),
        fill_ns=time(np.where(np.isfinite(fill), ns, 0)),
        **reached(group, groups, (rates.flops[rows], rates.moved[rows]), ns),
    )


def _part(share: F64, ns: I64, group: I64, groups: int) -> F64:
    """Per group the sum of the shares of its calls' times that are known, in ns."""
    known = np.isfinite(share)
    weights = share[known] * ns[known]
    return np.bincount(group[known], weights=weights, minlength=groups).astype(np.float64)
