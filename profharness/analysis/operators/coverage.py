"""How much of a trace its operators explain (docs/metrics.md#operator-work): the time of matrix
kernels whose work is known, the time of all kernels that were launched inside of an operator, and,
for the rest, why it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.records import (
    NO_FORMULA,
    NO_SHAPES,
    KnownWork,
    OperatorShare,
    add_reasons,
)
from profharness.analysis.operators.rows import RowWork
from profharness.analysis.time.linking import Links
from profharness.findings import Finding, finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.units import format_number

Mask = npt.NDArray[np.bool_]

REPLAY = "graph replay"
NO_LAUNCH = "launch not in the file"
NO_OPERATOR = "no operator around the launch"
_LISTED = 3  # entries that a message names


def known_work(facts: KernelFacts, links: Links, time_ns: I64 | None = None) -> KnownWork | None:
    """How much of the matrix work of a trace is known; None where no kernel has a time. `links` are
    those of its kernels; with `time_ns` (per kernel, as cut to a window) that time counts.
    """
    trace = facts.trace
    time_ns = trace.kernels.dur_ns if time_ns is None else time_ns
    if not time_ns.any():
        return None
    multiplying = facts.multiplying
    known = multiplying & np.isfinite(facts.work.flops)
    hidden = _hidden(trace, facts.operators, links)
    return KnownWork(
        matrix_kernel_ns=int(time_ns[multiplying].sum()),
        known_ns=int(time_ns[known].sum()),
        reasons=_by_reason(np.where(multiplying & ~known, time_ns, 0), hidden),
    )


def operator_share(trace: Trace, links: Links, time_ns: I64 | None = None) -> OperatorShare | None:
    """How much of the kernel time was launched inside of a recorded operator; None without
    operators or without a kernel that has a time. `links` and `time_ns` as for `known_work`.
    """
    kernels = trace.kernels
    time_ns = kernels.dur_ns if time_ns is None else time_ns
    if not len(trace.ops) or not time_ns.any():
        return None
    inside = kernels.op != NULL
    return OperatorShare(
        kernel_ns=int(time_ns.sum()),
        in_operators_ns=int(time_ns[inside].sum()),
        reasons=_by_reason(np.where(inside, 0, time_ns), _unlaunched(trace, links)),
    )


def misfits(facts: KernelFacts) -> tuple[Finding, ...]:
    """A finding where entries of the tables of formulas did not fit calls of their operators."""
    rows = facts.operators
    if rows is None or not rows.misfits:
        return ()
    listed = [f"{entry} ({_calls(count)})" for entry, count in rows.misfits[:_LISTED]]
    if len(rows.misfits) > _LISTED:
        listed.append(f"{len(rows.misfits) - _LISTED} more")
    calls = sum(count for _, count in rows.misfits)
    found = finding(
        "formula-misfit",
        f"{_workless(calls)}, as the formula that is meant for {'it' if calls == 1 else 'them'} "
        f"does not fit: {'; '.join(listed)}",
        calls=calls,
        entries=len(rows.misfits),
        entry=rows.misfits[0][0],
    )
    return (found,)


def _workless(calls: int) -> str:
    what = "operator call has" if calls == 1 else "operator calls have"
    return f"{format_number(calls)} {what} no figure of work"


def _calls(count: int) -> str:
    return f"{format_number(count)} {'call' if count == 1 else 'calls'}"


@dataclass(frozen=True, eq=False)
class _Reason:
    """A reason, and the kernels that it holds for."""

    reason: str
    kernels: Mask


def _by_reason(time_ns: I64, reasons: list[_Reason]) -> dict[str, int]:
    """Each kernel's time by the first reason that holds for it."""
    times = []
    for one in reasons:
        held = int(time_ns[one.kernels].sum())
        if held:
            times.append({one.reason: held})
        time_ns = np.where(one.kernels, 0, time_ns)
    return add_reasons(times)


def _unlaunched(trace: Trace, links: Links) -> list[_Reason]:
    """Why kernels belong to no operator, in the order in which the reasons count."""
    kernels = trace.kernels
    captured = np.zeros(len(kernels), np.bool_)
    if len(trace.ops):
        captured = (kernels.op != NULL) & (trace.ops.replay[kernels.op] != NULL)
    return [
        _Reason(REPLAY, links.in_graph & ~captured),
        _Reason(NO_LAUNCH, ~links.linked & (kernels.op == NULL)),
        _Reason(NO_OPERATOR, kernels.op == NULL),
    ]


def _hidden(trace: Trace, rows: RowWork | None, links: Links) -> list[_Reason]:
    """Why work is not known, in the order in which the reasons count."""
    kernels, reasons = trace.kernels, _unlaunched(trace, links)
    if rows is None:
        return reasons
    said = _said(trace, rows)[kernels.op]
    reasons += [_Reason(reason, said == code) for code, reason in enumerate(rows.reasons)]
    shapeless = (trace.ops.shapes == NULL)[kernels.op]
    everything = np.ones(len(kernels), np.bool_)
    return [*reasons, _Reason(NO_SHAPES, shapeless), _Reason(NO_FORMULA, everything)]


def _said(trace: Trace, rows: RowWork) -> I64:
    """Per operator the reason that it, or the nearest one around it, gives."""
    nearest = nests(trace.ops).nearest(rows.reason != NULL)
    return np.where(nearest == NULL, NULL, rows.reason[nearest])
