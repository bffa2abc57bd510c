"""Answer and Next for a scan of plans: N processes by M cores each."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.curves.plans import Plan, Plans, compare_plans
from profharness.analysis.records import PointSummary, Summary
from profharness.report.axes.words import factor_text
from profharness.report.table import Column
from profharness.report.text.figures import interval_text
from profharness.report.text.labels import device_word, item_unit, on_cpu, several_cores
from profharness.report.text.measured.held_cores import held, not_told_apart
from profharness.units import of_cores

_MOST_NAMED = 8


def plans_of(summary: Summary) -> Plans | None:
    """The comparison of the summary's plans; None for another kind of scan."""
    return compare_plans(summary.points)


def plan_cells(points: Sequence[PointSummary]) -> tuple[tuple[Column, str], ...]:
    """The columns that tell plans apart, each with the field of a point that it shows; empty for
    another kind of scan.
    """
    if not several_cores(points):
        return ()
    batches = len({point.batch_size for point in points}) > 1
    return (
        (Column("processes", "right"), "processes"),
        (Column("cores each", "right"), "cores_per_process"),
        *(((Column("batch", "right"), "batch_size"),) if batches else ()),
    )


def answer(summary: Summary, plans: Plans) -> str:
    """Which plan is best and by how much; or that other work held the cores of the best one."""
    best = plans.plans[0]
    rate = interval_text(best.throughput.value or 0.0, best.throughput.low, best.throughput.high)
    said = f"{rate} {item_unit(summary)} at {_name(best, plans)}"
    if held_at_best(summary, plans):
        return not_told_apart(said, device_word(summary))
    shown = plans.plans[1 : 1 + _MOST_NAMED]
    others = "; ".join(f"{_name(plan, plans)} {factor_text(plan.of_best)}" for plan in shown)
    rest = len(plans.plans) - 1 - len(shown)
    more = f"; and {rest} more less" if rest else ""
    parts = [f"Best of {len(plans.plans)} plans is {said}. Of that rate reach: {others}{more}."]
    if plans.overlaps_best:
        alike = [_name(plan, plans) for plan in plans.plans if plan.point in plans.overlaps_best]
        parts.append(f"The intervals reach 1 for {'; '.join(alike)}: the best is not proven.")
    else:
        parts.append("No interval reaches 1: it is proven best.")
    return " ".join(parts)


def held_at_best(summary: Summary, plans: Plans) -> bool:
    """Whether other work held the cores at the plan that would be called the best."""
    best = tuple(point for point in summary.points if point.point == plans.best)
    return on_cpu(summary) and bool(held(best))


def next_step(plans: Plans) -> str:
    """The options that ask for the best plan, or for an answer where it is not proven."""
    best = plans.plans[0]
    asked = f"--streams {best.processes} --cores-per-process {best.cores_per_process}"
    if not plans.overlaps_best:
        return f"Use {asked}."
    return (
        f"Repeat on a quiet node with a longer --time to tell them apart; until then {asked} is as "
        "good as any of them."
    )


def _name(plan: Plan, plans: Plans) -> str:
    """`4 processes of 2 cores`, with batch size and backend where these differ."""
    processes = f"{plan.processes} process{'' if plan.processes == 1 else 'es'}"
    name = f"{processes} of {of_cores(plan.cores_per_process)}"
    if len({one.batch_size for one in plans.plans}) > 1:
        name += f", batch {plan.batch_size}"
    return f"{name} ({plan.backend})" if len({one.backend for one in plans.plans}) > 1 else name
