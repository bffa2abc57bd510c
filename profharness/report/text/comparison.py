"""Two runs beside each other, as `profharness compare` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.compare.gate import Breach
from profharness.analysis.compare.operators.records import StepChange
from profharness.analysis.compare.records import (
    Comparison,
    Delta,
    Difference,
    HotspotComparison,
    PointComparison,
)
from profharness.analysis.compare.runs import RATES, TIMES
from profharness.report.compared.branches import DEPTH
from profharness.report.compared.tables import work_tables
from profharness.report.compared.words import other_work_words, work_answer
from profharness.report.tables.comparison import (
    SHOWN,
    changed_rows,
    delta_table,
    hotspot_change_table,
    range_table,
    reason_table,
    shown_of_run,
)
from profharness.report.text.changes import change_reason, change_text
from profharness.report.text.figures import quantity_text
from profharness.report.text.listing import listing
from profharness.report.text.names import title_of
from profharness.rundir.shown.screen import lines_text, one_line

_NAMES_AT = 60  # where the names of hotspots begin, below which their reasons stand
_ANSWER = 400
_NAMED = 8  # points that one side lacks, by name; the others are counted
_PARTS = 3  # of a difference, that are named as its reason
_FIRST = ("throughput", "steps_per_second", "latency", "latency_p50", "step_time")


def sides_title(a: str, b: str) -> str:
    """`before.json against after.json`, of the names of two runs or files."""
    shorts = [one_line(name, 200).rstrip("/").rsplit("/", 1)[-1] for name in (a, b)]
    return f"{shorts[0]} against {shorts[1]}"


def answer(comparison: Comparison) -> str:
    """What changed in one sentence: of scans over their points, of all else in the figure that says
    most. Of traces with operators it is how much longer a step takes, and what makes it so; of two
    traces of different work that they are.
    """
    if comparison.other_work is not None:
        return other_work_words(comparison.other_work, comparison.step)
    if comparison.points:
        return _points_answer(comparison)
    if comparison.step is not None and comparison.operators is not None:
        return work_answer(comparison.step, comparison.operators)
    by_name = {delta.name: delta for delta in comparison.run}
    first = next((by_name[name] for name in _FIRST if name in by_name), None)
    if first is not None:
        return f"From A to B {title_of(first.name)} goes {_values(first)}: {change_text(first)}."
    changed = sorted(comparison.run, key=lambda delta: -abs(delta.change))
    if not changed:
        return "Nothing in common to compare."
    largest = changed[0]
    return (
        f"The largest change is that of {title_of(largest.name)}, {_values(largest)}: "
        f"{change_text(largest)}."
    )


def _points_answer(comparison: Comparison) -> str:
    rates = [
        (point.point, delta)
        for point in comparison.points
        for delta in point.deltas
        if delta.name == "throughput"
    ]
    if not rates:
        return f"{len(comparison.points)} points in common, none with a throughput in both."
    changed = [(name, delta) for name, delta in rates if delta.significant]
    if not changed:
        return f"No throughput changed by more than the noise, at {len(rates)} points in common."
    name, delta = max(changed, key=lambda pair: abs(pair[1].change))
    return (
        f"Throughput changed by more than the noise at {len(changed)} of {len(rates)} points in "
        f"common, most at {name}: {_values(delta)}, {change_text(delta)}."
    )


def _values(delta: Delta) -> str:
    return f"from {quantity_text(delta.a, delta.unit)} to {quantity_text(delta.b, delta.unit)}"


def why(comparison: Comparison) -> str:
    """The largest parts that go the way of the change, with their effect on the time, and a ceiling
    that moved it; what explains where no such part is known. Empty without any reason.
    """
    reasons, slower = next(
        (
            (found, change)
            for found, change in (
                (comparison.reasons, _got_slower(comparison.run, comparison.step)),
                *((point.reasons, _got_slower(point.deltas)) for point in comparison.points),
            )
            if found
        ),
        ((), None),
    )
    along = [
        one for one in reasons if one.effect and (slower is None or (one.effect > 0) is slower)
    ]
    named = [
        *along[:_PARTS],
        *[one for one in reasons if one.kind == "ceiling"],
    ] or [one for one in reasons if one.effect is None][:1]
    if not named:
        return ""
    said = "; ".join(
        one.message.rstrip(".") + ("" if one.effect is None else f" ({100 * one.effect:+.1f} %)")
        for one in named
    )
    return f"{said[:1].upper()}{said[1:]}."


def _got_slower(deltas: Sequence[Delta], step: StepChange | None = None) -> bool | None:
    """Whether a step or trial takes longer in B; None where neither its time nor a rate says so."""
    if step is not None:
        return step.difference_ns > 0
    by_name = {delta.name: delta.change for delta in deltas}
    for names, sign in ((RATES, -1), (TIMES, 1)):
        for name in names:
            if name in by_name:
                return sign * by_name[name] > 0
    return None


def side(name: str, errors: Sequence[str]) -> str:
    """A run's name, with its own findings that speak against it."""
    return f"{name} (not sound by itself: {', '.join(errors)})" if errors else name


def comparison_text(comparison: Comparison, breaches: Sequence[Breach], depth: int = DEPTH) -> str:
    """Both runs, every point with its changes and their reasons, hotspots, and broken limits; of
    traces with operators first where their time differs, the tree `depth` levels deep.
    """
    return lines_text(comparison_lines(comparison, breaches, depth))


def comparison_lines(
    comparison: Comparison, breaches: Sequence[Breach], depth: int = DEPTH
) -> Iterator[str]:
    """The lines of `comparison_text`."""
    yield from _heading(comparison)
    yield from _work_lines(comparison, depth)
    for point in comparison.points:
        yield from _point_lines(point)
    shown = shown_of_run(comparison)
    if shown and not comparison.points:
        yield "run"
        yield from listing(delta_table(shown), indent=2)
    yield from listing(range_table(comparison.run_ranges), indent=2)
    yield from listing(reason_table(comparison.reasons), indent=2)
    for table in comparison.hotspots:
        yield from _hotspot_lines(table)
    yield from not_compared(comparison)
    if not comparison.points and not comparison.run:
        yield "nothing in common to compare"
    for breach in breaches:
        place = f" at {breach.point}" if breach.point else ""
        yield f"fails {breach.condition}{place}: {change_text(breach.delta)}"


def _heading(comparison: Comparison) -> Iterator[str]:
    """Both runs, with what speaks against them, and what was different from the start."""
    for letter, run, errors in (
        ("A", comparison.run_a, comparison.errors_a),
        ("B", comparison.run_b, comparison.errors_b),
    ):
        yield f"{letter}  {one_line(run)}" + (
            f"   (not sound by itself: {', '.join(errors)})" if errors else ""
        )
    yield from other_differences(comparison)


def other_differences(comparison: Comparison) -> Iterator[str]:
    """What was different from the start: `asked differently: batch_sizes 4 -> 8`, `ran on: ...`."""
    for title, differences in (
        ("asked differently", comparison.asked),
        ("ran on", comparison.ran_on),
    ):
        if differences:
            yield f"{title}: {'; '.join(_difference(difference) for difference in differences)}"


def not_compared(comparison: Comparison) -> Iterator[str]:
    """The points that one of the runs lacks, or that failed in the second."""
    for title, names in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("failed in B", comparison.failed),
    ):
        if names:
            rest = len(names) - _NAMED
            more = f" and {rest} more" if rest > 0 else ""
            yield f"{title}: {', '.join(names[:_NAMED])}{more}"


def _difference(difference: Difference) -> str:
    before, after = (
        "not set" if value is None or not value else value for value in (difference.a, difference.b)
    )
    return f"{difference.name} {before} -> {after}"


def _point_lines(point: PointComparison) -> Iterator[str]:
    deltas = [delta for delta in point.deltas if delta.name in SHOWN]
    if deltas:
        yield point.point
        yield from listing(delta_table(deltas), indent=2)
        yield from listing(range_table(point.ranges), indent=2)
        yield from listing(reason_table(point.reasons), indent=2)


def _work_lines(comparison: Comparison, depth: int) -> Iterator[str]:
    """The answer, each table of work, and the tree."""
    if comparison.step is None and comparison.other_work is None:
        return
    yield f"Answer  {one_line(answer(comparison), _ANSWER)}"
    if said := why(comparison):
        yield f"Why     {one_line(said, _ANSWER)}"
    for table in work_tables(comparison, depth):
        yield f"{table.title}{f': {table.note}' if table.note else ''}"
        yield from listing(table, indent=2, heads=True)
        if table.left_out:
            yield f"  and {table.left_out} more (--json has all)"


def _hotspot_lines(table: HotspotComparison) -> Iterator[str]:
    rows = changed_rows(table)
    if not rows:
        yield f"hotspots by {table.by}: the same"
        return
    yield f"hotspots by {table.by}, largest change of total time first (mean per call)"
    head, *lines = listing(hotspot_change_table(table), indent=2, heads=True)
    yield head
    for row, line in zip(rows, lines, strict=True):
        yield line
        why = change_reason(row)
        if why:
            yield f"{'':>{_NAMES_AT}}{why}"
