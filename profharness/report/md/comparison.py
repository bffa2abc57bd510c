"""Two runs beside each other as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.compare.gate import Breach
from profharness.analysis.compare.records import Comparison
from profharness.report.compared.branches import DEPTH
from profharness.report.compared.tables import work_tables
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.tables.comparison import change_table, hotspot_change_table, range_table
from profharness.report.text.changes import change_text
from profharness.report.text.comparison import answer, side


def comparison_markdown(
    comparison: Comparison, breaches: Sequence[Breach], depth: int = DEPTH
) -> str:
    """Both runs, a table of all points with their changes, reasons, hotspots and broken limits; of
    traces with operators first where their time differs, the tree `depth` levels deep.
    """
    return "\n".join(_parts(comparison, breaches, depth))


def _parts(comparison: Comparison, breaches: Sequence[Breach], depth: int) -> Iterator[str]:
    for letter, run, errors in (
        ("A", comparison.run_a, comparison.errors_a),
        ("B", comparison.run_b, comparison.errors_b),
    ):
        yield f"- **{letter}** {escaped(side(run, errors))}"
    yield ""
    yield from _work(comparison, depth)
    changes = change_table(comparison)
    if changes is not None:
        yield markdown(changes)
    elif comparison.points or comparison.run:
        yield "No figure that both have changed by 5 % or more.\n"
    else:
        yield "Nothing in common to compare.\n"
    if (ranges := range_table(comparison.run_ranges)).rows:
        yield markdown(ranges)
    yield from _reasons(comparison)
    for table in comparison.hotspots:
        changed = hotspot_change_table(table)
        if changed.rows:
            yield heading(f"Hotspots by {table.by}, largest change first", 3) + markdown(changed)
    yield from (
        f"- fails `{breach.condition}`"
        f"{escaped(f' at {breach.point}' if breach.point else '')}: {change_text(breach.delta)}"
        for breach in breaches
    )


def _work(comparison: Comparison, depth: int) -> Iterator[str]:
    if comparison.step is None:
        return
    yield f"**{escaped(answer(comparison))}**\n"
    for table in work_tables(comparison, depth):
        yield heading(table.title.capitalize(), 3) + markdown(table)


def _reasons(comparison: Comparison) -> Iterator[str]:
    places = [
        *((point.point, point.reasons) for point in comparison.points),
        ("", comparison.reasons),
    ]
    lines = [
        f"- {escaped(f'{place}: ' if place else '')}"
        f"{'' if reason.effect is None else f'{100 * reason.effect:+.1f} % '}"
        f"{escaped(reason.message)}"
        for place, reasons in places
        for reason in reasons
    ]
    if lines:
        yield heading("Why", 3) + "\n".join(lines) + "\n"
