"""How much of a trace's matrix work is known: the time of its matrix kernels, and of the rest by
what hides it (docs/metrics.md#operator-work).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.rows import RowWork
from profharness.analysis.operators.work import KernelWork, matrix_kernels
from profharness.analysis.time.linking import Links
from profharness.analysis.use.records import KnownWork as KnownWork  # noqa: PLC0414  its record
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

Mask = npt.NDArray[np.bool_]

REPLAY = "graph replay"
NO_LAUNCH = "launch not in the file"
NO_OPERATOR = "no operator around the launch"
NO_SHAPES = "no shapes"
NO_FORMULA = "no formula"


def known_work(trace: Trace, work: KernelWork, rows: RowWork | None, links: Links) -> KnownWork:
    """How much of the matrix work of a trace is known. `rows` is None where the trace has no
    operators; `links` are those of its kernels.
    """
    kernels = trace.kernels
    multiplying = matrix_kernels(kernels.name, trace.strings)
    known = multiplying & np.isfinite(work.flops)
    reasons: dict[str, int] = {}
    left = multiplying & ~known & (kernels.dur_ns > 0)
    for reason, hidden in _hidden(trace, rows, links):
        mine = left & hidden
        if mine.any():
            reasons[reason] = reasons.get(reason, 0) + int(kernels.dur_ns[mine].sum())
        left &= ~hidden
    return KnownWork(
        matrix_kernel_ns=int(kernels.dur_ns[multiplying].sum()),
        known_ns=int(kernels.dur_ns[known].sum()),
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )


def _hidden(trace: Trace, rows: RowWork | None, links: Links) -> list[tuple[str, Mask]]:
    """Reasons in the order in which they count, each with the kernels that it holds for."""
    kernels, everything = trace.kernels, np.ones(len(trace.kernels), np.bool_)
    hidden = [(REPLAY, links.in_graph), (NO_LAUNCH, ~links.linked & (kernels.op == NULL))]
    if rows is None:
        return [*hidden, (NO_OPERATOR, everything)]
    hidden.append((NO_OPERATOR, kernels.op == NULL))
    said = _said(trace, rows)[kernels.op]
    hidden += [(reason, said == code) for code, reason in enumerate(rows.reasons)]
    shapeless = (trace.ops.shapes == NULL)[kernels.op]
    return [*hidden, (NO_SHAPES, shapeless), (NO_FORMULA, everything)]


def _said(trace: Trace, rows: RowWork) -> I64:
    """Per operator the reason that it, or the nearest one around it, gives."""
    nearest = nests(trace.ops).nearest(rows.reason != NULL)
    return np.where(nearest == NULL, NULL, rows.reason[nearest])
