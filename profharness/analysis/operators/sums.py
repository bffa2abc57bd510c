"""What the rows of a table by operator say beside times on the host: device time, work, and how
near to the ceilings it was done (docs/metrics.md#hotspots).

Everything is a sum over calls, so that the tables of many files can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.columns import fill_of_kernels
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.roofline import BANDWIDTH, CLASSES, COMPUTE
from profharness.analysis.operators.device_time import device_time, lasting
from profharness.analysis.operators.gradients import forward_of
from profharness.analysis.operators.nests import nests
from profharness.analysis.time.timeline import is_communication
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64

LIMITERS = ("compute", "bandwidth", "inside-kernel", "undetermined", "underfilled")
_UNDERFILLED = len(CLASSES)
UNDERFILLED_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class OperatorSums:
    """Per group of operators, summed over its calls.

    Times in ns: `device` of the device records that belong to the calls, `inclusive` with those of
    nested operators, `worked` of the records that do the work that is known, and of that work the
    least time by the ceilings: `least`, and by operations (`by_flops`) and bytes (`by_bytes`)
    alone. `flops`, `flops_full` and `bytes` are sums over the calls for which they are known;
    `flops_calls` and `bytes_calls` count these. `limits` is the time of kernels by limiter,
    (groups, 5) in the order of LIMITERS. `outside_ns` is the device time that belongs to no
    operator.
    """

    device: I64
    inclusive: I64
    worked: I64
    least: F64
    by_flops: F64
    by_bytes: F64
    flops: F64
    flops_full: F64
    flops_calls: I64
    bytes: F64
    bytes_calls: I64
    limits: I64
    forward: tuple[str, ...]
    outside_ns: int | None

    @property
    def traced(self) -> bool:
        """Whether a device was recorded."""
        return self.outside_ns is not None


def operator_sums(facts: KernelFacts, group: I64, groups: int) -> OperatorSums:
    """The sums of the operators of a trace; `group` is the number of each operator's group."""
    trace = facts.trace
    ops, rows = trace.ops, facts.operators
    assert rows is not None
    times = device_time(trace)
    zero = np.zeros(len(ops), np.int64)
    own, inclusive = (zero, zero) if times is None else (times.own_ns, times.inclusive_ns)

    def whole(values: I64) -> I64:
        total = np.zeros(groups, np.int64)
        np.add.at(total, group, values)
        return total

    def part(values: F64) -> F64:
        known = np.isfinite(values)
        total = np.bincount(group[known], weights=values[known], minlength=groups)
        return total.astype(np.float64)

    counted = np.isfinite(rows.flops) | np.isfinite(rows.low_bytes)
    worked, by_flops, by_bytes = at_the_ceilings(facts, counted)
    return OperatorSums(
        device=whole(own),
        inclusive=whole(inclusive),
        worked=whole(np.where(counted, worked, 0)),
        least=part(np.fmax(by_flops, by_bytes)),
        by_flops=part(by_flops),
        by_bytes=part(by_bytes),
        flops=part(rows.flops),
        flops_full=part(rows.flops_full),
        flops_calls=whole(np.isfinite(rows.flops).astype(np.int64)),
        bytes=part(rows.low_bytes),
        bytes_calls=whole(np.isfinite(rows.low_bytes).astype(np.int64)),
        limits=_limits(facts, group, groups),
        forward=_forward(facts, group, groups),
        outside_ns=None if times is None else times.outside_ns,
    )


def at_the_ceilings(facts: KernelFacts, counted: npt.NDArray[np.bool_]) -> tuple[I64, F64, F64]:
    """Per operator whose work is known: the time of the records that do it, and the least times by
    operations and by bytes (NaN where not known), in ns.
    """
    trace = facts.trace
    holder = nests(trace.ops).nearest(counted)
    worked = np.zeros(len(trace.ops), np.int64)
    for records in (trace.kernels, trace.copies):
        owner = (
            np.where(records.op == NULL, NULL, holder[records.op]) if len(records) else records.op
        )
        held = owner != NULL
        np.add.at(worked, owner[held], lasting(records)[held])
    kernels = trace.kernels
    least = []
    for share in (facts.rates.compute_share, facts.rates.bandwidth_share):
        known = np.isfinite(share) & (kernels.op != NULL)
        owner = holder[kernels.op[known]]
        inside = owner != NULL
        times = (share[known] * kernels.dur_ns[known])[inside]
        total = np.bincount(owner[inside], weights=times, minlength=len(trace.ops))
        some = np.bincount(owner[inside], minlength=len(trace.ops)) > 0
        least.append(np.where(some, total, np.nan))
    return worked, least[0], least[1]


def _limits(facts: KernelFacts, group: I64, groups: int) -> I64:
    """Kernel time by group and limiter, collectives left out; a kernel that reaches no ceiling and
    leaves more than half of the compute units without a workgroup is underfilled.
    """
    kernels = facts.trace.kernels
    rows = np.flatnonzero(kernels.op != NULL)
    return limits_of(facts, rows, group[kernels.op[rows]], groups)


def limits_of(facts: KernelFacts, rows: I64, group: I64, groups: int) -> I64:
    """The same of some kernels, each with the number of its group."""
    kernels = facts.trace.kernels
    limits = np.zeros((groups, len(LIMITERS)), np.int64)
    computing = ~is_communication(facts.trace.strings, kernels)[rows]
    rows, group = rows[computing], group[computing]
    if not len(rows):
        return limits
    kind = facts.rates.kind[rows]
    fill = fill_of_kernels(facts.trace)[rows]
    reached = (kind == COMPUTE) | (kind == BANDWIDTH)
    kind = np.where(~reached & (fill < UNDERFILLED_SHARE), _UNDERFILLED, kind)
    np.add.at(limits, (group, kind), lasting(kernels)[rows])
    return limits


def _forward(facts: KernelFacts, group: I64, groups: int) -> tuple[str, ...]:
    """By group the name of the forward operator that most of its calls belong to, or nothing. What
    runs a forward pass again belongs to none.
    """
    assert facts.operators is not None
    trace, made = facts.trace, forward_of(facts.trace.ops)
    rows = np.flatnonzero((made != NULL) & ~facts.operators.again)
    names = [""] * groups
    if not len(rows):
        return tuple(names)
    pairs, counts = np.unique(
        np.stack((group[rows], trace.ops.name[made[rows]].astype(np.int64)), axis=1),
        axis=0,
        return_counts=True,
    )
    for place in np.argsort(counts, kind="stable").tolist():  # the most frequent is written last
        names[int(pairs[place, 0])] = trace.strings[int(pairs[place, 1])]
    return tuple(names)


def join(parts: Sequence[OperatorSums], moved: Sequence[I64], groups: int) -> OperatorSums:
    """The sums of several tables; `moved` are the new numbers of the groups of each."""
    total: dict[str, npt.NDArray[np.generic]] = {}
    names = [""] * groups
    for part, place in zip(parts, moved, strict=True):
        for column in fields(part):
            values = getattr(part, column.name)
            if isinstance(values, np.ndarray):
                into = total.setdefault(
                    column.name, np.zeros((groups, *values.shape[1:]), values.dtype)
                )
                np.add.at(into, place, values)
        for position, name in zip(place.tolist(), part.forward, strict=True):
            names[position] = names[position] or name
    outside = [part.outside_ns for part in parts if part.outside_ns is not None]
    return OperatorSums(
        **total,  # type: ignore[arg-type]  # arrays of the columns above
        forward=tuple(names),
        outside_ns=sum(outside) if outside else None,
    )


@dataclass(frozen=True)
class OperatorFigures:
    """What a row says of its operators' work; None where it is not known."""

    flops: float | None
    flops_calls: int
    flops_full: float | None
    low_bytes: float | None
    bytes_calls: int
    peak_share: float | None
    limiter: str | None
    excess_ns: float | None


def figures(sums: OperatorSums, at: int) -> OperatorFigures:
    """The figures of one group.

    `peak_share` is the larger of the shares of the two ceilings while the group's known work ran,
    `limiter` what held most of its kernel time back, `excess_ns` the time above the least that the
    ceilings allow.
    """
    flops_calls, bytes_calls = int(sums.flops_calls[at]), int(sums.bytes_calls[at])
    worked, least = int(sums.worked[at]), float(sums.least[at])
    measured = worked > 0 and least > 0
    limits = sums.limits[at]
    nearest = max(float(sums.by_flops[at]), float(sums.by_bytes[at]))
    share = min(nearest / worked, 1.0) if measured else None
    return OperatorFigures(
        flops=float(sums.flops[at]) if flops_calls else None,
        flops_calls=flops_calls,
        flops_full=float(sums.flops_full[at]) if flops_calls else None,
        low_bytes=float(sums.bytes[at]) if bytes_calls else None,
        bytes_calls=bytes_calls,
        peak_share=share,
        limiter=LIMITERS[int(np.argmax(limits))] if limits.any() else None,
        excess_ns=max(worked - least, 0.0) if measured else None,
    )
