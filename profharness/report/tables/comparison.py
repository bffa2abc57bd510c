"""Tables of what differs between two runs: figures, reasons, hotspots, and broken limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text import names
from profharness.report.text.changes import change_text
from profharness.report.text.figures import quantity_text
from profharness.units import format_ns

if TYPE_CHECKING:
    from profharness.analysis.compare.gate import Breach
    from profharness.analysis.compare.reasons import Reason
    from profharness.analysis.compare.records import Delta, HotspotComparison, HotspotDelta

HOTSPOT_ROWS = 8
REASONS = 6
_NAME = 14
_NAME_AND_VALUES = 50


def delta_table(deltas: Sequence[Delta]) -> Table:
    """Name, both values and the change of each figure."""
    width = max(_NAME, *(len(names.title_of(delta.name)) for delta in deltas))
    columns = (
        Column("figure", width=width),
        Column("values", width=_NAME_AND_VALUES - width, gap=" "),
        Column("change", gap=" "),
    )
    return Table(
        "Changes",
        columns,
        tuple(
            row_of(
                names.title_of(delta.name),
                f"{quantity_text(delta.a, delta.unit)} -> {quantity_text(delta.b, delta.unit)}",
                change_text(delta),
            )
            for delta in deltas
        ),
    )


def reason_table(reasons: Sequence[Reason]) -> Table:
    """`why  +12.0 %  idle: launches in progress rose ...`.

    What explains without a known effect stands last, without a figure.
    """
    columns = (
        Column(width=_NAME),
        Column("effect", "right", width=8, gap=" "),
        Column("reason"),
    )
    shown = reasons[:REASONS]
    return Table(
        "Reasons",
        columns,
        tuple(
            row_of(
                "why" if number == 0 else "",
                "" if reason.effect is None else f"{100 * reason.effect:+.1f} %",
                reason.message,
            )
            for number, reason in enumerate(shown)
        ),
        left_out=len(reasons) - len(shown),
    )


def changed_rows(table: HotspotComparison) -> list[HotspotDelta]:
    """The first rows whose total time differs."""
    return [row for row in table.rows if (row.total_a_ns or 0) != (row.total_b_ns or 0)][
        :HOTSPOT_ROWS
    ]


def hotspot_change_table(table: HotspotComparison) -> Table:
    """Mean time per call, its change, and calls of the rows of `changed_rows`."""
    columns = (
        Column("mean in A", "right", width=10),
        Column("mean in B", "right", width=10),
        Column("change", "right", width=8),
        Column("calls in A", "right", width=10),
        Column("calls in B", "right", width=10),
        Column("name"),
    )
    return Table(f"hotspots by {table.by}", columns, tuple(map(_hotspot_row, changed_rows(table))))


def _hotspot_row(row: HotspotDelta) -> tuple[Cell, ...]:
    means = ["-" if mean is None else format_ns(mean) for mean in (row.mean_a_ns, row.mean_b_ns)]
    return row_of(
        *means,
        "" if row.change is None else f"{100 * row.change:+.1f} %",
        str(row.calls_a or 0),
        str(row.calls_b or 0),
        row.name[:80],
    )


def breach_table(breaches: Sequence[Breach]) -> Table:
    """Each limit of `--fail-on` that is broken, where, and by which change; for JSON."""
    columns = (Column(key="condition"), Column(key="point"), Column(key="change"))
    return Table(
        "Broken limits",
        columns,
        tuple(
            (
                Cell(value=breach.condition),
                Cell(value=breach.point),
                Cell(value=breach.delta.change),
            )
            for breach in breaches
        ),
    )
