"""Tables of where the records came from: sources with their clocks, and problems while reading."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from profharness.analysis.records import ProblemRow, SourceRow, Summary
from profharness.report.table import Cell, Column, Table
from profharness.rundir.telemetry import NOT_SAMPLED
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


def _together(problems: Sequence[ProblemRow]) -> list[ProblemRow]:
    """The problems, with all that one source could not sample for one reason as one of them."""
    shown: list[ProblemRow] = []
    unsampled: dict[tuple[str, str], int] = {}  # where what a source lacks for a reason is shown
    for row in problems:
        name, apart, reason = row.message.partition(NOT_SAMPLED)
        at = unsampled.get((row.source, reason)) if apart else None
        if at is None:
            unsampled[row.source, reason] = len(shown)
            shown.append(row)
            continue
        names = re.split(" was not sampled: | were not sampled: ", shown[at].message)[0]
        shown[at] = msgspec.structs.replace(
            shown[at],
            message=f"{names}, {name} were not sampled: {reason}",
            count=shown[at].count + row.count,
        )
    return shown


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
        for row in _together(summary.problems)
    )
    return Table(
        "Problems",
        (Column("severity"), Column("count", "right"), Column("what"), Column("source")),
        rows,
    )
