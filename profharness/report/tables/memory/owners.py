"""The rows of `hotspots --by memory`."""

from __future__ import annotations

from profharness.analysis.memory.owners import MemoryOwners, OwnerRow
from profharness.report.csv import csv_text
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.table import Cell, Column, Table
from profharness.report.text.listing import listing
from profharness.units import format_bytes, format_number, format_share

_COLUMNS = (
    Column("at the peak", "right", "alive at the peak", key="kept_bytes", unit="B"),
    Column("share", "right", "of the peak", key="share"),
    Column("pieces", "right", "allocations alive at the peak", key="kept"),
    Column("taken", "right", "taken in the window", key="bytes", unit="B"),
    Column("allocations", "right", "in the window", key="allocations"),
    Column("point", key="point"),
    Column("memory", key="device"),
    Column("by", meaning="operator or module", key="owner"),
    Column("name", key="name"),
)


def owners_table(table: MemoryOwners, top: int) -> Table:
    """The first rows."""
    return Table(
        "by memory",
        _COLUMNS,
        tuple(map(_cells, table.rows[:top])),
        note=_NOTE,
        left_out=max(len(table.rows) - top, 0),
    )


_NOTE = "operators sum to the peak of each memory, and so do modules: both do not add up"


def owners_text(table: MemoryOwners, top: int, _width: int | None = None) -> str:
    """The rows as aligned lines below the sum of the peaks."""
    shown = owners_table(table, top)
    lines = [_heading(table), *listing(shown, heads=True)]
    if shown.left_out:
        lines.append(f"and {shown.left_out} more rows (--top)")
    return "\n".join([*lines, *([_NOTE] if shown.rows else [])]) + "\n"


def owners_markdown(table: MemoryOwners, top: int) -> str:
    """The rows below a heading."""
    return (
        heading("By memory")
        + f"{escaped(_heading(table))}.\n\n"
        + markdown(owners_table(table, top))
    )


def owners_csv(table: MemoryOwners, *, raw: bool = False) -> str:
    """One row per operator or module of each memory; an empty `device` is the host."""
    return csv_text(owners_table(table, len(table.rows)), raw=raw)


def _heading(table: MemoryOwners) -> str:
    return f"by memory: {format_bytes(table.peak_bytes)} at the peaks"


def _cells(row: OwnerRow) -> tuple[Cell, ...]:
    place = "host" if row.device is None else f"device {row.device}"
    share = format_share(row.share) if row.share else ""
    return (
        Cell(format_bytes(row.kept_bytes) if row.kept_bytes else "", value=row.kept_bytes),
        Cell(share, value=row.share),
        Cell(format_number(row.kept) if row.kept else "", value=row.kept),
        Cell(format_bytes(row.bytes) if row.bytes else "", value=row.bytes),
        Cell(format_number(row.allocations) if row.allocations else "", value=row.allocations),
        Cell(row.point, value=row.point),
        Cell(place, value=row.device),
        Cell(row.owner, value=row.owner),
        Cell(row.name, value=row.name),
    )
