"""The table of the parts that the time of a window divides into."""

from __future__ import annotations

from profharness.analysis.records import Summary
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.table import Cell, Column, Table
from profharness.report.text.limits import NOT_RECORDED, open_label
from profharness.units import format_ns, format_share


def partition_table(summary: Summary) -> Table | None:
    """The parts of a whole window with their times, and gaps by size."""
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return None
    rows = [
        (
            Cell(open_label(partition) if part.label == NOT_RECORDED else part.label),
            Cell(format_share(part_ns(partition, part) / partition.window_ns)),
            Cell(format_ns(part_ns(partition, part))),
        )
        for part in PARTS
        if part_ns(partition, part)
    ]
    for label, total, exposed in (
        (
            "communication, hidden behind compute",
            partition.communication_ns,
            partition.exposed_communication_ns,
        ),
        ("copies, hidden behind compute", partition.copy_ns, partition.exposed_copy_ns),
    ):
        if total > exposed:
            rows.append(
                (
                    Cell(label, emphasis="muted"),
                    Cell(format_share((total - exposed) / partition.window_ns), emphasis="muted"),
                    Cell(format_ns(total - exposed), emphasis="muted"),
                )
            )
    return Table(
        "Parts of the window",
        (Column("part"), Column("share", "right"), Column("time", "right")),
        tuple(rows),
    )
