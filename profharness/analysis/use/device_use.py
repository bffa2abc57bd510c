"""The record of how well devices were used, from the kernels and operators of one pass, or of
several files that are ranks of one job (docs/metrics.md#device-use).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.kernels.ceilings import Ceilings
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.useful_work import lowest
from profharness.analysis.operators.coverage import NO_LAUNCH, REPLAY, known_work
from profharness.analysis.operators.device_time import device_time
from profharness.analysis.operators.records import NO_FORMULA, KnownWork, add_known_work
from profharness.analysis.time.counts import pass_of
from profharness.analysis.time.linking import link_kernels
from profharness.analysis.use import rows
from profharness.analysis.use.counted import operator_counters
from profharness.analysis.use.records import (
    DeviceUse,
    FilesUse,
    OperatorCounter,
    Roof,
    UnknownWork,
    UseRow,
)
from profharness.analysis.use.sums import NO_SUMS, RowSums, join, rows_of
from profharness.node.devices import Dtype
from profharness.trace.columns.table import NULL

MOST_SHAPES = 60
"""So many kinds of calls are told apart by their inputs; more are shown by operator alone."""
MOST_ROOFS, LEAST_ROOF = 3, 0.01
"""At most so many types have a ceiling, and each at least this share of the time of known work."""
NO_OPERATORS = (
    "operators with the shapes of their inputs: profharness run --profile torch, or "
    "torch.profiler with record_shapes=True"
)
NO_SHAPES = (
    "the shapes of the operators' inputs: profharness run --profile torch, or torch.profiler with "
    "record_shapes=True"
)
NO_TIMES = "times of a pass without counters: such a pass runs kernels one by one"
NO_KERNELS = "kernels: the recording holds only copies and fills"
NO_WORK = "device work with times"
_FOR_REASON = {
    REPLAY: "the operators of the graphs: the trace of their capture, or a run without graphs",
    NO_LAUNCH: "the launches of all kernels: a window that begins before they are launched",
    NO_FORMULA: "formulas of the operators that multiply (docs/formulas.md)",
}


@dataclass(frozen=True, eq=False)
class UseSums:
    """What the use of the devices of one pass, or of one file, is made of, small enough to send.

    `ceilings` are those of its devices, each once; `dtype_ns` is the kernel time of known work by
    type. `shapes` are the operators by their inputs whose operations are known, None where those
    that have a place under the ceilings are too many to be drawn. `needs` is what to record where
    no operator or kernel has such a place, else empty.
    """

    pass_name: str | None
    device_ns: int
    outside_ns: int
    ceilings: tuple[Ceilings, ...]
    dtype_ns: dict[Dtype, int]
    operators: RowSums
    shapes: RowSums | None
    kernels: RowSums
    known: KnownWork | None
    counters: tuple[OperatorCounter, ...]
    needs: str


def device_use(facts: KernelFacts) -> DeviceUse | None:
    """The use of the devices of one pass; None where it holds no device work with times."""
    found = use_sums(facts)
    if found is None:
        return None
    return DeviceUse(
        pass_name=found.pass_name,
        device_ns=found.device_ns,
        outside_ns=found.outside_ns,
        roofs=_roofs(found.ceilings, found.dtype_ns),
        bandwidth=_bandwidth(found.ceilings),
        operators=_with_time(found.operators, found.device_ns),
        shapes=() if found.shapes is None else _drawn(found.shapes, found.device_ns),
        kernels=rows_of(found.kernels, found.device_ns),
        known=found.known,
        counters=found.counters,
        needs=found.needs,
    )


def files_use(files: Sequence[tuple[str, UseSums | None]]) -> FilesUse | None:
    """The use of the devices of several files that share none, each with its name, and with None
    where it holds no device work with times. None where no file does.

    All figures are those of all records together; counters are left out.
    """
    parts = [part for _, part in files if part is not None]
    if not parts:
        return None
    device_ns = sum(part.device_ns for part in parts)
    ceilings = _distinct(roof for part in parts for roof in part.ceilings)
    dtype_ns: Counter[Dtype] = Counter()
    for part in parts:
        dtype_ns.update(part.dtype_ns)
    # a file without operators says nothing of how their times differ
    operators = [part.operators for part in parts if part.operators.keys]
    shapes = [part.shapes for part in parts if part.shapes is not None]
    passes = {part.pass_name for part in parts}
    placed = any(not part.needs for part in parts)
    return FilesUse(
        files=len(files),
        pass_name=parts[0].pass_name if len(passes) == 1 else None,
        device_ns=device_ns,
        outside_ns=sum(part.outside_ns for part in parts),
        roofs=_roofs(ceilings, dtype_ns),
        bandwidth=_bandwidth(ceilings),
        operators=_with_time(join(operators), device_ns),
        shapes=_drawn(join(shapes), device_ns) if len(shapes) == len(parts) else (),
        kernels=rows_of(join([part.kernels for part in parts]), device_ns),
        known=add_known_work(part.known for part in parts),
        needs="" if placed else "; ".join(dict.fromkeys(part.needs for part in parts)),
        unknown=_unknown(files) if placed else (),
    )


def use_sums(facts: KernelFacts) -> UseSums | None:
    """What one pass or file adds; None where it holds no device work with times."""
    trace = facts.trace
    times = device_time(trace)
    if times is None:
        return None
    device_ns = int(times.own_ns.sum()) + times.outside_ns
    if not device_ns:
        return None
    operators, shapes, kernels = NO_SUMS, NO_SUMS, rows.of_kernels(facts)
    if facts.operators is not None:
        operators, shapes = rows.of_operators(facts)
    counted = facts.yardstick.counted
    known = known_work(facts, link_kernels(trace))
    placed = (operators.placed & (operators.device_ns > 0)).any() or kernels.placed.any()
    return UseSums(
        pass_name=pass_of(trace),
        device_ns=device_ns,
        outside_ns=times.outside_ns,
        ceilings=_distinct(facts.roofs.values()),
        dtype_ns=_dtype_ns(facts),
        operators=operators,
        shapes=_few(shapes),
        kernels=kernels,
        known=known,
        counters=operator_counters(counted, trace) if counted is not None else (),
        needs="" if placed else _needs(facts, known),
    )


def _with_time(operators: RowSums, device_ns: int) -> tuple[UseRow, ...]:
    return rows_of(operators.at(np.flatnonzero(operators.device_ns > 0)), device_ns)


def _drawn(shapes: RowSums, device_ns: int) -> tuple[UseRow, ...]:
    """The operators by their inputs that have a place, where these are few."""
    placed = np.flatnonzero(shapes.placed & (shapes.device_ns > 0))
    return rows_of(shapes.at(placed), device_ns) if len(placed) <= MOST_SHAPES else ()


def _few(shapes: RowSums) -> RowSums | None:
    """What may have a place once other files are added: no more of it is kept, so that a job of
    many ranks takes little memory.
    """
    if np.count_nonzero(shapes.placed & (shapes.device_ns > 0)) > MOST_SHAPES:
        return None
    return shapes.at(np.flatnonzero(shapes.flops > 0))


def _unknown(files: Sequence[tuple[str, UseSums | None]]) -> tuple[UnknownWork, ...]:
    """The files that add no work, by what they need."""
    lacking: dict[str, list[str]] = {}
    for name, part in files:
        if needs := NO_WORK if part is None else part.needs:
            lacking.setdefault(needs, []).append(name)
    return tuple(
        UnknownWork(needs=needs, files=len(names), first=names[0])
        for needs, names in lacking.items()
    )


def _distinct(ceilings: Iterable[Ceilings]) -> tuple[Ceilings, ...]:
    found: list[Ceilings] = []
    for roof in ceilings:
        if roof not in found:
            found.append(roof)
    return tuple(found)


def _dtype_ns(facts: KernelFacts) -> dict[Dtype, int]:
    work, dur_ns = facts.work, facts.trace.kernels.dur_ns
    return {
        dtype: int(dur_ns[(work.dtype == code) & np.isfinite(work.flops)].sum())
        for code, dtype in enumerate(work.dtypes)
    }


def _roofs(ceilings: Sequence[Ceilings], times: Mapping[Dtype, int]) -> tuple[Roof, ...]:
    """The compute ceilings of the types in which the known work is done, that with most kernel time
    first; of one device, the lowest where they differ.
    """
    least = LEAST_ROOF * sum(times.values())
    found = []
    for dtype in sorted(times, key=lambda name: -times[name])[:MOST_ROOFS]:
        roof = lowest(roofs.flops(dtype) for roofs in ceilings)
        if roof is not None and times[dtype] > least:
            found.append(Roof(value=roof.value, source=roof.source, dtype=dtype))
    return tuple(found)


def _bandwidth(ceilings: Sequence[Ceilings]) -> Roof | None:
    roof = lowest(roofs.bandwidth for roofs in ceilings)
    return None if roof is None else Roof(value=roof.value, source=roof.source)


def _needs(facts: KernelFacts, known: KnownWork | None) -> str:
    """What to record where no row has a place under the ceilings."""
    if not len(facts.trace.kernels):
        return NO_KERNELS
    ops = facts.trace.ops
    if not facts.timed or known is None:
        return NO_TIMES
    if not len(ops):
        return NO_OPERATORS
    if not (ops.shapes != NULL).any():
        return NO_SHAPES
    return next(
        (_FOR_REASON[reason] for reason in known.reasons if reason in _FOR_REASON),
        "device work of operators that multiply matrices",
    )
