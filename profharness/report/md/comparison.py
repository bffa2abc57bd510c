"""Two runs beside each other as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.compare.gate import Breach
from profharness.analysis.compare.records import Comparison, Delta
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.table import Column, Table, row_of
from profharness.report.tables.comparison import hotspot_change_table
from profharness.report.text import names
from profharness.report.text.changes import change_text
from profharness.report.text.comparison import SHOWN, SHOWN_OF_RUN
from profharness.report.text.figures import quantity_text, times_text


def comparison_markdown(comparison: Comparison, breaches: Sequence[Breach]) -> str:
    """Both runs, a table of all points with their changes, reasons, hotspots and broken limits."""
    return "\n".join(_parts(comparison, breaches))


def _parts(comparison: Comparison, breaches: Sequence[Breach]) -> Iterator[str]:
    for letter, run, errors in (
        ("A", comparison.run_a, comparison.errors_a),
        ("B", comparison.run_b, comparison.errors_b),
    ):
        unsound = f" (not sound by itself: {', '.join(errors)})" if errors else ""
        yield f"- **{letter}** {escaped(run + unsound)}"
    yield ""
    rows = [
        (point.point, delta)
        for point in comparison.points
        for delta in point.deltas
        if delta.name in SHOWN
    ]
    if not comparison.points:
        rows = [("whole run", delta) for delta in comparison.run if delta.name in SHOWN_OF_RUN]
    yield markdown(change_table(rows)) if rows else "Nothing in common to compare.\n"
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


def change_table(rows: Sequence[tuple[str, Delta]]) -> Table:
    """A row for each figure of each point: both values, and B over A as `1.23 ± 0.04 times`."""
    columns = (
        Column("point"),
        Column("figure"),
        Column("A", "right"),
        Column("B", "right"),
        Column("B over A", "right"),
        Column("what it says"),
    )
    return Table(
        "Changes",
        columns,
        tuple(
            row_of(
                point,
                names.title_of(delta.name),
                quantity_text(delta.a, delta.unit),
                quantity_text(delta.b, delta.unit),
                times_text(1 + delta.change, _plus_one(delta.low), _plus_one(delta.high)),
                change_text(delta),
            )
            for point, delta in rows
        ),
    )


def _plus_one(change: float | None) -> float | None:
    return None if change is None else 1 + change


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
