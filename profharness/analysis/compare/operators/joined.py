"""A comparison of figures with that of the work behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from profharness.analysis.compare.deltas import BY_DRIFT
from profharness.analysis.compare.operators.changes import compare_work
from profharness.analysis.compare.operators.content import Content
from profharness.analysis.compare.operators.records import OtherWork, WorkComparison
from profharness.analysis.compare.reasons import LEAST, WORTH, Reason, of_way
from profharness.analysis.compare.records import Comparison, Delta
from profharness.analysis.records import Summary
from profharness.units import format_ns, format_share

_STEP_TIME = "step_time"
_IN_COMMON, _ANYTHING = 0.2, 0.05
_NAMED = 3
_CEILINGS = {"ceiling_flops": "compute", "ceiling_bandwidth": "bandwidth"}


def with_work(
    comparison: Comparison, a: tuple[Summary, Content | None], b: tuple[Summary, Content | None]
) -> Comparison:
    """The comparison with the work of both traces, where both hold operators; of two traces of
    different work without reasons. Where their kernels have other names altogether, as on devices
    of two vendors, that they do is no reason.
    """
    step = next((one for one in comparison.run if one.name == _STEP_TIME), None)
    work = compare_work(a[1], b[1])
    if work is None:
        other = _other_kernels(comparison, a[0], b[0])
        return _unlike(comparison, other) if other is not None else comparison
    fields = {name: getattr(work, name) for name in work.__struct_fields__}
    joined = msgspec.structs.replace(comparison, **fields)
    if work.other_work is not None:
        return _unlike(joined, work.other_work)
    return msgspec.structs.replace(joined, reasons=tuple(_reasons(comparison, work, step)))


def _unlike(comparison: Comparison, other: OtherWork) -> Comparison:
    """Two traces of different work: no figure is better for it, and nothing needs a reason."""
    run = tuple(msgspec.structs.replace(delta, better="neither") for delta in comparison.run)
    return msgspec.structs.replace(comparison, other_work=other, run=run, reasons=())


def _other_kernels(comparison: Comparison, a: Summary, b: Summary) -> OtherWork | None:
    """That two traces without operators, of one kind of device, have hardly a kernel in common."""
    if comparison.points or not a.device_names or {*a.device_names} != {*b.device_names}:
        return None
    rows = [row for table in comparison.hotspots if table.by == "kernel" for row in table.rows]
    whole_a, whole_b = (
        sum(time or 0 for time in times)
        for times in ([row.total_a_ns for row in rows], [row.total_b_ns for row in rows])
    )
    both = [row for row in rows if row.total_a_ns and row.total_b_ns]
    if not whole_a or not whole_b:
        return None
    common_a = sum(row.total_a_ns or 0 for row in both) / whole_a
    common_b = sum(row.total_b_ns or 0 for row in both) / whole_b
    if max(common_a, common_b) >= _ANYTHING:
        return None
    return OtherWork(of="kernels", common_a=common_a, common_b=common_b)


def _reasons(comparison: Comparison, work: WorkComparison, step: Delta | None) -> Iterator[Reason]:
    """The parts of the difference by category, with idle time: those that go its way first, the
    largest first, then those against it; then what explains. All of them sum to the difference.
    """
    categories, before = work.categories, work.step.whole_a_ns / work.step.parts[0]
    change = (work.step.whole_b_ns / work.step.parts[1]) / before - 1
    noise = math.expm1(BY_DRIFT) if step is None or step.noise is None else step.noise
    if categories is None or abs(change) <= noise:
        return
    parts_a, parts_b = work.step.parts
    parts = [
        Reason(
            kind="idle" if row.name == "idle" else "category",
            effect=row.difference_ns / before,
            noise=noise,
            message=f"{row.name}: {format_ns((row.a_ns or 0) / parts_a)} of a step in A, "
            f"{format_ns((row.b_ns or 0) / parts_b)} in B",
        )
        for row in categories.rows
        if abs(row.difference_ns / before) > max(WORTH * abs(change), LEAST)
    ]
    yield from of_way(parts, change)
    yield from _ceilings(comparison, work)
    alike = _common_share(comparison) >= _IN_COMMON
    for reason in comparison.reasons:
        if reason.effect is None:
            yield reason
        elif reason.kind.startswith("kernel") and alike:  # a part of a category: it explains
            yield msgspec.structs.replace(reason, effect=None, noise=None)


def _ceilings(comparison: Comparison, work: WorkComparison) -> Iterator[Reason]:
    """Ceilings that differ and hold operators back whose time moved that way."""
    for delta in comparison.run:
        limiter = _CEILINGS.get(delta.name)
        held = [row.name for row in work.operators.rows if limiter and row.limiter == limiter]
        if held:
            word = "higher" if delta.change > 0 else "lower"
            yield Reason(
                kind="ceiling",
                message=f"the {limiter} ceiling is {format_share(abs(delta.change), 0)} {word} "
                f"in B, which holds back {', '.join(held[:_NAMED])}",
            )


def _common_share(comparison: Comparison) -> float:
    """The share of the kernel time of both that kernels of both names take; 1 without kernels."""
    rows = [row for table in comparison.hotspots if table.by == "kernel" for row in table.rows]
    whole = sum((row.total_a_ns or 0) + (row.total_b_ns or 0) for row in rows)
    common = sum(
        row.total_a_ns + row.total_b_ns for row in rows if row.total_a_ns and row.total_b_ns
    )
    return common / whole if whole else 1.0
