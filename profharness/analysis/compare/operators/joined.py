"""A comparison of figures with that of the work behind them."""

from __future__ import annotations

import msgspec

from profharness.analysis.compare.operators.changes import compare_work
from profharness.analysis.compare.operators.content import Content
from profharness.analysis.compare.records import Comparison

_STEP_TIME = "step_time"
_IN_COMMON = 0.2
_SWITCHED = "kernels-switched"


def with_work(comparison: Comparison, a: Content | None, b: Content | None) -> Comparison:
    """The comparison with the work of both traces, where both hold operators. Where their kernels
    have other names altogether, as on devices of two vendors, that they do is no reason any more.
    """
    step = next((one for one in comparison.run if one.name == _STEP_TIME), None)
    work = compare_work(a, b, (None, None) if step is None else (step.a, step.b))
    if work is None:
        return comparison
    reasons = comparison.reasons
    if _common_share(comparison) < _IN_COMMON:
        reasons = tuple(reason for reason in reasons if reason.kind != _SWITCHED)
    fields = {name: getattr(work, name) for name in work.__struct_fields__}
    return msgspec.structs.replace(comparison, reasons=reasons, **fields)


def _common_share(comparison: Comparison) -> float:
    """The share of the kernel time of both that kernels of both names take; 1 without kernels."""
    rows = [row for table in comparison.hotspots if table.by == "kernel" for row in table.rows]
    whole = sum((row.total_a_ns or 0) + (row.total_b_ns or 0) for row in rows)
    common = sum(
        row.total_a_ns + row.total_b_ns for row in rows if row.total_a_ns and row.total_b_ns
    )
    return common / whole if whole else 1.0
