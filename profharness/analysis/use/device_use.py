"""The record of how well a device was used, from the kernels and operators of one pass
(docs/metrics.md#device-use).
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.useful_work import lowest
from profharness.analysis.operators.coverage import NO_LAUNCH, REPLAY, known_work
from profharness.analysis.operators.device_time import device_time
from profharness.analysis.operators.records import NO_FORMULA, KnownWork
from profharness.analysis.time.counts import pass_of
from profharness.analysis.time.linking import link_kernels
from profharness.analysis.use.counted import operator_counters
from profharness.analysis.use.records import DeviceUse, Roof, UseRow
from profharness.analysis.use.rows import kernel_rows, operator_rows
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
_FOR_REASON = {
    REPLAY: "the operators of the graphs: the trace of their capture, or a run without graphs",
    NO_LAUNCH: "the launches of all kernels: a window that begins before they are launched",
    NO_FORMULA: "formulas of the operators that multiply (docs/formulas.md)",
}


def device_use(facts: KernelFacts) -> DeviceUse | None:
    """The use of the devices of one pass; None where it holds no device work with times."""
    trace = facts.trace
    times = device_time(trace)
    if times is None:
        return None
    held = int(times.own_ns.sum())
    device_ns = held + times.outside_ns
    if not device_ns:
        return None
    operators, shapes = _operators(facts, device_ns)
    kernels = kernel_rows(facts, device_ns)
    bandwidth = lowest(roof.bandwidth for roof in facts.roofs.values())
    counted = facts.yardstick.counted
    known = known_work(facts, link_kernels(trace))
    return DeviceUse(
        pass_name=pass_of(trace),
        device_ns=device_ns,
        outside_ns=times.outside_ns,
        roofs=_roofs(facts),
        bandwidth=None
        if bandwidth is None
        else Roof(value=bandwidth.value, source=bandwidth.source),
        operators=operators,
        shapes=shapes,
        kernels=kernels,
        known=known,
        counters=operator_counters(counted, trace) if counted is not None else (),
        needs=_needs(facts, (*operators, *kernels), known),
    )


def _operators(facts: KernelFacts, device_ns: int) -> tuple[tuple[UseRow, ...], tuple[UseRow, ...]]:
    """Operators by name, and by name and inputs where these are few."""
    if facts.operators is None:
        return (), ()
    placed = [
        row for row in operator_rows(facts, device_ns, shapes=True) if row.intensity is not None
    ]
    return (
        operator_rows(facts, device_ns, shapes=False),
        tuple(placed) if len(placed) <= MOST_SHAPES else (),
    )


def _roofs(facts: KernelFacts) -> tuple[Roof, ...]:
    """The compute ceilings of the types in which the known work is done, that with most kernel time
    first; of one device, the lowest where they differ.
    """
    work, dur_ns = facts.work, facts.trace.kernels.dur_ns
    times = {
        dtype: int(dur_ns[(work.dtype == code) & np.isfinite(work.flops)].sum())
        for code, dtype in enumerate(work.dtypes)
    }
    least = LEAST_ROOF * sum(times.values())
    found = []
    for dtype in sorted(times, key=lambda name: -times[name])[:MOST_ROOFS]:
        roof = lowest(roofs.flops(dtype) for roofs in facts.roofs.values())
        if roof is not None and times[dtype] > least:
            found.append(Roof(value=roof.value, source=roof.source, dtype=dtype))
    return tuple(found)


def _needs(facts: KernelFacts, rows: tuple[UseRow, ...], known: KnownWork | None) -> str:
    """What to record where no row has a place under the ceilings; empty where one has."""
    if any(row.intensity is not None for row in rows):
        return ""
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
