"""Tables of what differs between two runs: figures, reasons, hotspots, and broken limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profharness.analysis.records import Estimate, Figure
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text import names
from profharness.report.text.changes import change_text
from profharness.report.text.figures import figure_text, quantity_text, times_text
from profharness.report.text.folding import whole_names
from profharness.units import format_ns

if TYPE_CHECKING:
    from profharness.analysis.compare.gate import Breach
    from profharness.analysis.compare.reasons import Reason
    from profharness.analysis.compare.records import (
        Comparison,
        Delta,
        HotspotComparison,
        HotspotDelta,
        RangeDelta,
    )

SHOWN = ("throughput", "latency", "latency_p50", "latency_p99")
SHOWN_OF_RUN = ("steps_per_second", "throughput")
_SHOWN_RANGES = frozenset({"busy", "idle"})
HOTSPOT_ROWS = 8
REASONS = 6
_NAME = 14
_NAME_AND_VALUES = 50
_NOTABLE = 0.05
"""A change of a figure of the whole that is shown; the first figures always are."""


def shown_of_run(comparison: Comparison) -> list[Delta]:
    """The figures of the whole to show: the rates, and what changed by 5 % or more beyond noise."""
    return [
        delta
        for delta in comparison.run
        if delta.name in SHOWN_OF_RUN
        or (delta.significant is not False and abs(delta.change) >= _NOTABLE)
    ]


def change_table(comparison: Comparison) -> Table | None:
    """A row for each figure of each point, or of the whole where there are no points in common:
    both values, and B over A as `1.23 ± 0.04 times`. None where nothing is to be shown.
    """
    rows = [
        (point.point, delta)
        for point in comparison.points
        for delta in point.deltas
        if delta.name in SHOWN
    ]
    if not comparison.points:
        rows = [("whole run", delta) for delta in shown_of_run(comparison)]
    columns = (
        Column("point"),
        Column("figure"),
        Column("A", "right"),
        Column("B", "right"),
        Column("B over A", "right"),
        Column("what it says"),
    )
    return Table("Changes", columns, tuple(map(_change_row, rows))) if rows else None


def _change_row(row: tuple[str, Delta]) -> tuple[Cell, ...]:
    point, delta = row
    return row_of(
        point,
        names.title_of(delta.name),
        quantity_text(delta.a, delta.unit),
        quantity_text(delta.b, delta.unit),
        over_text(delta),
        change_text(delta),
    )


def delta_values(comparison: Comparison) -> Table:
    """Every change for programs: those of the points, then those of the whole, which have no
    point.
    """
    of_all = [
        *((point.point, delta) for point in comparison.points for delta in point.deltas),
        *((None, delta) for delta in comparison.run),
    ]
    fields = ("name", "unit", "a", "b", "change", "low", "high", "noise", "significant", "better")
    rows = tuple(
        tuple(Cell(value=value) for value in (point, *(getattr(delta, key) for key in fields)))
        for point, delta in of_all
    )
    return Table("changes", tuple(Column(key=key) for key in ("point", *fields)), rows)


def over_text(delta: Delta) -> str:
    """B over A: `1.254 ± 0.030 times`."""
    ends = (None if end is None else 1 + end for end in (delta.low, delta.high))
    return times_text(1 + delta.change, *ends)


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


def range_table(ranges: Sequence[RangeDelta]) -> Table:
    """Figures of which a run knows only ends, busy and idle time and those that lie apart: both
    sides, and whether they do.
    """
    shown = [one for one in ranges if one.apart or one.name in _SHOWN_RANGES]
    width = max([_NAME, *(len(names.title_of(one.name)) for one in shown)])
    columns = (
        Column("figure", width=width),
        Column("values", width=_NAME_AND_VALUES - width, gap=" "),
        Column("change", gap=" "),
    )
    return Table(
        "Ranges",
        columns,
        tuple(
            row_of(
                names.title_of(one.name),
                " -> ".join(ends_text(side, one.unit) for side in (one.a, one.b)),
                range_change(one),
            )
            for one in shown
        ),
    )


def range_change(one: RangeDelta) -> str:
    """Whether a change is told by two ranges."""
    return "changed: the ranges lie apart" if one.apart else "not told: the ranges meet"


def ends_text(side: Estimate, unit: str) -> str:
    """A side's value, or its ends."""
    return figure_text(Figure(value=side.value, unit=unit, low=side.low, high=side.high))


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
    rows = changed_rows(table)
    whole = whole_names([row.name for row in rows])
    return Table(f"hotspots by {table.by}", columns, tuple(map(_hotspot_row, rows, whole)))


def _hotspot_row(row: HotspotDelta, name: str) -> tuple[Cell, ...]:
    means = ["-" if mean is None else format_ns(mean) for mean in (row.mean_a_ns, row.mean_b_ns)]
    return row_of(
        *means,
        "" if row.change is None else f"{100 * row.change:+.1f} %",
        str(row.calls_a or 0),
        str(row.calls_b or 0),
        name[:80],
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
