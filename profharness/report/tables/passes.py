"""The table of a run's passes: what each recorded, and what that cost."""

from __future__ import annotations

from profharness.analysis.records import Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import percent_text
from profharness.report.text.labels import is_command
from profharness.units import format_clock


def passes_table(summary: Summary) -> Table | None:
    """Each pass: layers, how long it took, its state, and what each layer cost."""
    if not summary.passes:
        return None
    missing = "not measured: needs --bare" if is_command(summary) else ""
    rows = tuple(
        (
            Cell(row.name),
            Cell(", ".join(row.layers) or "none"),
            Cell("" if row.seconds is None else format_clock(row.seconds)),
            Cell(row.state, emphasis="error" if row.state in {"failed", "interrupted"} else ""),
            Cell(
                ", ".join(f"{layer} {percent_text(value)}" for layer, value in row.overhead.items())
                or (missing if row.layers else ""),
                emphasis="" if row.overhead else "muted",
            ),
        )
        for row in summary.passes
    )
    return Table(
        "Passes",
        (
            Column("pass"),
            Column("layers"),
            Column("time", "right"),
            Column("state"),
            Column("overhead", "left", "loss of throughput against the bare pass"),
        ),
        rows,
    )
