"""Tables of where the records came from: sources with their clocks, and problems while reading."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import SourceRow, Summary
from profharness.report.table import Cell, Column, Table
from profharness.units import format_ns, format_number


def sources_table(summary: Summary) -> Table | None:
    """Provenance and alignment of every source: host residual, bound, and the causal interval per
    device.
    """
    if not summary.sources:
        return None
    columns = (
        Column("source"),
        Column("layer"),
        Column("format", wide=True),
        Column("clock", wide=True),
        Column("alignment", wide=True),
        Column(
            "residual",
            "right",
            "self-check: a marker's place after alignment against the host's own times",
        ),
        Column("bound", "right", "no time of this source is further off than this"),
        Column(
            "causal interval",
            "right",
            "shifts for which no kernel starts before its launch or ends after its synchronisation",
        ),
    )
    alike: dict[SourceRow, list[SourceRow]] = {}
    for source in summary.sources:
        alike.setdefault(
            msgspec.structs.replace(source, path="", point="", pass_name=""), []
        ).append(source)
    return Table(
        "Sources", columns, tuple(_source_row(group[0], len(group) - 1) for group in alike.values())
    )


def _source_row(source: SourceRow, alike: int) -> tuple[Cell, ...]:
    """One row for a source and those `alike` it, which differ by path only."""
    causal = ""
    if source.causal_low_ns is not None and source.causal_high_ns is not None:
        causal = f"{_signed(source.causal_low_ns)} to {_signed(source.causal_high_ns)}"
    form = f"{source.format} {source.tool_version}".strip()
    more = f" and {alike} more" if alike else ""
    return (
        Cell(
            f"{source.path}{more}",
            provenance=f"point {source.point}" if source.point and not alike else "",
        ),
        Cell(source.layer),
        Cell(form),
        Cell(source.clock),
        Cell(source.alignment or "none needed"),
        Cell(_time(source.residual_ns)),
        Cell(_time(source.bound_ns)),
        Cell(causal),
    )


def _time(ns: int | None) -> str:
    return "" if ns is None else format_ns(ns, 3)


def _signed(ns: int) -> str:
    return f"−{format_ns(-ns, 3)}" if ns < 0 else format_ns(ns, 3)


def problems_table(summary: Summary) -> Table | None:
    """What the readers dropped or repaired, counted."""
    if not summary.problems:
        return None
    rows = tuple(
        (
            Cell(row.severity, emphasis=row.severity),
            Cell(format_number(row.count)),
            Cell(row.message),
            Cell(row.source, emphasis="muted"),
        )
        for row in summary.problems
    )
    return Table(
        "Problems",
        (Column("severity"), Column("count", "right"), Column("what"), Column("source")),
        rows,
    )
