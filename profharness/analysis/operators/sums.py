"""What the rows of a hotspot table say beside times: device time of operators and of what holds
them, work, and how near to the ceilings it was done (docs/metrics.md#hotspots).

Everything is a sum over calls, so that the tables of many files can be joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.columns import fill_of_kernels
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.filling import NEEDED_COVERAGE
from profharness.analysis.kernels.roofline import BANDWIDTH, CLASSES, COMPUTE
from profharness.analysis.operators.device_time import device_time, is_timed, lasting
from profharness.analysis.operators.gradients import forward_of
from profharness.analysis.operators.nests import nests
from profharness.analysis.time.timeline import is_communication
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Copies, Kernels, Ops, Trace

Mask = npt.NDArray[np.bool_]

LIMITERS = ("compute", "bandwidth", "inside-kernel", "undetermined", "underfilled")
_UNDERFILLED = len(CLASSES)
UNDERFILLED_SHARE = 0.5


Placed = tuple[I64, F64, F64]
"""Per operator the time of the records that do its work, and the least times by operations and by
bytes, in ns."""


@dataclass(frozen=True, eq=False)
class Owners:
    """The number of the group that each operator, kernel and copy of a trace belongs to, of so many
    `groups`; NULL for none.
    """

    groups: int
    ops: I64
    kernels: I64
    copies: I64


def owners_of(trace: Trace, group: I64, groups: int) -> Owners:
    """Every device record belongs to the group of the operator that launched it."""

    def launched(records: Kernels | Copies) -> I64:
        if not len(trace.ops):
            return np.full(len(records), NULL, np.int64)
        return np.where(records.op == NULL, NULL, group[records.op])

    return Owners(groups, group, launched(trace.kernels), launched(trace.copies))


@dataclass(frozen=True, eq=False)
class WorkSums:
    """Per group of operators or of kernels, summed over its calls.

    Times in ns: `device` of the device records that belong to the calls, `inclusive` with those of
    nested ones, `worked` of the records that do the work that is known (`flops_ns` and `bytes_ns`
    where operations and bytes are), `measured` of those calls whose least time by the ceilings is
    known, and that least time: `least`, and by operations (`by_flops`) and bytes (`by_bytes`)
    alone. `flops`, `flops_full` and `bytes` are sums over the calls for which they are known;
    `flops_calls` and `bytes_calls` count these, and `timed_flops` and `timed_bytes` are of those
    whose device records have a time. `whole` is the time of all kernels of a group of kernels, of
    which most must be known for a rate; 0 for operators.
    `limits` is the time of kernels by limiter, (groups, 5) in the order of LIMITERS. `outside_ns`
    is the device time that belongs to no group, None for groups of kernels and without a device.
    """

    device: I64
    inclusive: I64
    worked: I64
    measured: I64
    whole: I64
    flops_ns: I64
    bytes_ns: I64
    least: F64
    by_flops: F64
    by_bytes: F64
    flops: F64
    flops_full: F64
    flops_calls: I64
    bytes: F64
    bytes_calls: I64
    timed_flops: F64
    timed_bytes: F64
    limits: I64
    forward: tuple[str, ...]
    outside_ns: int | None

    @property
    def traced(self) -> bool:
        """Whether a device was recorded, and the groups hold device time."""
        return self.outside_ns is not None

    def of_groups(self, groups: I64) -> WorkSums:
        """The sums of these groups alone, in their order."""
        columns: dict[str, Any] = {
            field.name: getattr(self, field.name)[groups]
            for field in fields(self)
            if field.name not in ("forward", "outside_ns")
        }
        forward = tuple(self.forward[at] for at in groups.tolist())
        return WorkSums(**columns, forward=forward, outside_ns=self.outside_ns)


def operator_sums(facts: KernelFacts, group: I64, groups: int) -> WorkSums:
    """The sums of the operators of a trace; `group` is the number of each operator's group."""
    times = device_time(facts.trace)
    inclusive = np.zeros(groups, np.int64)
    if times is not None:
        np.add.at(inclusive, group, times.inclusive_ns)
    forward = _forward(facts, group, groups)
    return sums_of(facts, owners_of(facts.trace, group, groups), inclusive, forward)


def sums_of(
    facts: KernelFacts,
    owners: Owners,
    inclusive: I64,
    forward: tuple[str, ...] = (),
    placed: Placed | None = None,
) -> WorkSums:
    """The sums of groups of operators and device records; `inclusive` is the device time of each
    group with what is nested in it, `placed` what `at_the_ceilings` gives, if known.
    """
    trace, rows, groups = facts.trace, facts.operators, owners.groups
    kernel_ns, copy_ns = lasting(trace.kernels), lasting(trace.copies)
    device = _whole(owners.kernels, kernel_ns, groups) + _whole(owners.copies, copy_ns, groups)
    traced = is_timed(trace)
    outside = int(kernel_ns.sum() + copy_ns.sum()) - int(device.sum())
    flops, low_bytes, flops_full = (
        (np.full(len(trace.ops), np.nan),) * 3
        if rows is None
        else (rows.flops, rows.low_bytes, rows.flops_full)
    )
    has_flops, has_bytes = np.isfinite(flops), np.isfinite(low_bytes)
    worked, by_flops, by_bytes = placed or at_the_ceilings(facts, has_flops | has_bytes)
    least, ran = np.fmax(by_flops, by_bytes), worked > 0
    of_ops = owners.ops
    return WorkSums(
        device=device,
        inclusive=inclusive,
        worked=_whole(of_ops, worked, groups),
        measured=_whole(of_ops, np.where(np.isfinite(least), worked, 0), groups),
        whole=np.zeros(groups, np.int64),
        flops_ns=_whole(of_ops, np.where(has_flops, worked, 0), groups),
        bytes_ns=_whole(of_ops, np.where(has_bytes, worked, 0), groups),
        least=_part(of_ops, least, groups),
        by_flops=_part(of_ops, by_flops, groups),
        by_bytes=_part(of_ops, by_bytes, groups),
        flops=_part(of_ops, flops, groups),
        flops_full=_part(of_ops, flops_full, groups),
        flops_calls=_whole(of_ops, has_flops, groups),
        bytes=_part(of_ops, low_bytes, groups),
        bytes_calls=_whole(of_ops, has_bytes, groups),
        timed_flops=_part(of_ops, np.where(ran, flops, np.nan), groups),
        timed_bytes=_part(of_ops, np.where(ran, low_bytes, np.nan), groups),
        limits=_limits(facts, owners.kernels, groups),
        forward=forward or ("",) * groups,
        outside_ns=outside if traced else None,
    )


def kernel_sums(facts: KernelFacts, group: I64, groups: int) -> WorkSums:
    """The sums of the kernels of a trace; `group` is the number of each kernel's group. A kernel's
    work is its part of its operator's (`analysis.operators.work`).
    """
    kernels, rates = facts.trace.kernels, facts.rates
    flops, low_bytes = facts.work.flops, facts.work.low_bytes
    lengths = lasting(kernels)
    by_flops, by_bytes = rates.compute_share * lengths, rates.bandwidth_share * lengths
    least = np.fmax(by_flops, by_bytes)
    has_flops, has_bytes, is_measured = (np.isfinite(one) for one in (flops, low_bytes, least))
    measured = _whole(group, np.where(is_measured, lengths, 0), groups)
    ran, nothing = lengths > 0, np.zeros(groups, np.int64)
    return WorkSums(
        device=nothing,
        inclusive=nothing,
        worked=measured,
        measured=measured,
        whole=_whole(group, lengths, groups),
        flops_ns=_whole(group, np.where(has_flops, lengths, 0), groups),
        bytes_ns=_whole(group, np.where(has_bytes, lengths, 0), groups),
        least=_part(group, least, groups),
        by_flops=_part(group, by_flops, groups),
        by_bytes=_part(group, by_bytes, groups),
        flops=_part(group, flops, groups),
        flops_full=np.full(groups, np.nan),
        flops_calls=_whole(group, has_flops, groups),
        bytes=_part(group, low_bytes, groups),
        bytes_calls=_whole(group, has_bytes, groups),
        timed_flops=_part(group, np.where(ran, flops, np.nan), groups),
        timed_bytes=_part(group, np.where(ran, low_bytes, np.nan), groups),
        limits=_limits(facts, group, groups),
        forward=("",) * groups,
        outside_ns=None,
    )


def _whole(group: I64, values: npt.NDArray[np.integer[Any]] | Mask, groups: int) -> I64:
    """Exact sums per group; what belongs to none is left out."""
    total, held = np.zeros(groups, np.int64), group != NULL
    np.add.at(total, group[held], values[held])
    return total


def _part(group: I64, values: F64, groups: int) -> F64:
    """Sums per group of the values that are known."""
    known = np.isfinite(values) & (group != NULL)
    total = np.bincount(group[known], weights=values[known], minlength=groups)
    return total.astype(np.float64)


def at_the_ceilings(facts: KernelFacts, counted: npt.NDArray[np.bool_]) -> Placed:
    """Per operator whose work is known: the time of the records that do it, and the least times by
    operations and by bytes (NaN where not known), in ns.
    """
    trace = facts.trace
    if not len(trace.ops):
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
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
    """Time of kernels by their group (NULL for none) and limiter."""
    rows = np.flatnonzero(group != NULL)
    return limits_of(facts, rows, group[rows], groups)


def limits_of(facts: KernelFacts, rows: I64, group: I64, groups: int) -> I64:
    """Time of these kernels by the number of their group and limiter, collectives left out; a
    kernel that reaches no ceiling and leaves more than half of the compute units without a
    workgroup is underfilled.
    """
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
    if facts.operators is None:
        return ("",) * groups
    trace, made = facts.trace, forward_of(facts.trace.ops)
    rows = np.flatnonzero((made != NULL) & (group != NULL) & ~facts.operators.again)
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


def join(parts: Sequence[WorkSums], moved: Sequence[I64], groups: int) -> WorkSums:
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
    return WorkSums(
        **total,  # type: ignore[arg-type]  # arrays of the columns above
        forward=tuple(names),
        outside_ns=sum(outside) if outside else None,
    )


def row_fields(sums: WorkSums | None, groups: I64) -> Iterator[dict[str, Any]]:
    """The fields of a row of hotspots on device time and work, of these groups, in their order;
    None where a figure is not known.

    `peak_share` is the larger of the shares of the two ceilings while the group's known work ran,
    `limiter` what held most of its kernel time back, `excess_ns` the time above the least that the
    ceilings allow.
    """
    if sums is None:
        return ({} for _ in groups)
    of = sums.of_groups(groups)
    measured = (of.measured > 0) & (of.least > 0)
    worked = np.where(measured, of.measured, 1)
    share = np.minimum(np.maximum(of.by_flops, of.by_bytes) / worked, 1.0)
    needed = NEEDED_COVERAGE * of.whole.astype(np.float64)
    counted, moved = of.flops_calls > 0, of.bytes_calls > 0
    traced = np.full(len(groups), of.traced)
    limiter = np.array(LIMITERS, object)[np.argmax(of.limits, axis=1)]
    columns = {
        "device_ns": _known(of.device, traced),
        "device_inclusive_ns": _known(of.inclusive, traced),
        "flops": _known(of.flops, counted),
        "flops_calls": of.flops_calls.tolist(),
        "flops_full": _known(of.flops_full, counted & np.isfinite(of.flops_full)),
        "flops_per_s": _rate(of.timed_flops, of.flops_ns, needed),
        "bytes": _known(of.bytes, moved),
        "bytes_calls": of.bytes_calls.tolist(),
        "bytes_per_s": _rate(of.timed_bytes, of.bytes_ns, needed),
        "peak_share": _known(share, measured),
        "limiter": _known(limiter, of.limits.any(axis=1)),
        "excess_ns": _known(np.maximum(of.measured - of.least, 0.0), measured),
        "forward_op": [name or None for name in of.forward],
    }
    rows = zip(*columns.values(), strict=True)
    return (dict(zip(columns, values, strict=True)) for values in rows)


def _known(values: npt.NDArray[Any], known: Mask) -> list[Any]:
    """The values as Python's own numbers, None where they are not known."""
    return [
        value if is_known else None
        for value, is_known in zip(values.tolist(), known.tolist(), strict=True)
    ]


def _rate(work: F64, ns: I64, needed_ns: F64) -> list[float | None]:
    """Work per second; None where no time of it is known, or less than is needed."""
    rate = work / np.where(ns > 0, ns, 1) * 1e9
    return _known(rate, (ns > 0) & (work > 0) & (ns >= needed_ns))


def host_times(ops: Ops, own_ns: I64, group: npt.NDArray[np.integer[Any]], groups: int) -> I64:
    """Each operator's own time on the host, in ns; NULL in groups that only graph replays ran."""
    called = np.zeros(groups, np.bool_)
    called[group[ops.replay == NULL]] = True
    return np.where(called[group], own_ns, NULL)
