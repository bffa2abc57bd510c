"""A row per sequence: what could be saved, what it is good for, and the kernels in their order."""

from __future__ import annotations

from itertools import groupby

from profharness.analysis.sequences.records import SequenceRow, Sequences
from profharness.report.csv import csv_text
from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.table import Cell, Column, Table
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.listing import listing
from profharness.units import format_bytes, format_ns, format_number, format_share

_NAME = 48  # letters of a kernel's name in a listing
_COLUMNS = (
    Column("saved", "right", "the most that can be gained", key="saved_ns", unit="ns"),
    Column("by", meaning="fuse the kernels, or capture them into a graph", key="use"),
    Column("calls", "right", key="calls"),
    Column("kernels", "right", "in one call", key="kernels"),
    Column("time", "right", "of all kernels", key="total_ns", unit="ns"),
    Column("gaps", "right", "idle time between them", key="gap_ns", unit="ns"),
    Column("bytes", "right", "that a fused kernel would not move", key="bytes", unit="B"),
    Column("in this order", key="sequence"),
)


def sequence_table(table: Sequences, top: int) -> Table:
    """The first rows, the operators in their order, kernels where none launched them."""
    return Table(
        "by sequence",
        _COLUMNS,
        tuple(map(_row, table.rows[:top])),
        note=". ".join(sequence_notes(table)),
        left_out=max(len(table.rows) - top, 0),
    )


def sequence_heading(table: Sequences) -> str:
    """How much of the kernels is short."""
    share = table.short_ns / table.kernel_ns if table.kernel_ns else 0.0
    return (
        f"by sequence: {format_number(table.short_kernels)} of {format_number(table.kernels)} "
        f"kernels are short, {format_share(share)} of kernel time; {format_ns(table.gap_ns)} of "
        "idle time before them"
    )


def sequence_notes(table: Sequences) -> tuple[str, ...]:
    """What short is, what the bytes were set against, and what does not add up."""
    bandwidth = (
        "bytes count nothing, since the bandwidth of the device is not known"
        if table.bandwidth is None
        else f"bytes count at {format_bytes(table.bandwidth)}/s"
    )
    return (
        "short: under 10 µs, or less than the idle time before it on its stream",
        f"saved: at most the gaps, and where kernels are fused the bytes; {bandwidth}",
        "sequences to fuse and sequences to capture into a graph overlap: both do not add up",
    )


def _row(row: SequenceRow) -> tuple[Cell, ...]:
    return (
        Cell(format_ns(row.saved_ns), value=row.saved_ns),
        Cell(row.use, value=row.use),
        Cell(format_number(row.calls), value=row.calls),
        Cell(format_number(row.kernels), value=row.kernels),
        Cell(format_ns(row.total_ns), value=row.total_ns),
        Cell(format_ns(row.gap_ns), value=row.gap_ns),
        Cell(_bytes(row), value=row.bytes),
        Cell(order_text(row), value=" > ".join(row.names)),
    )


def _bytes(row: SequenceRow) -> str:
    """Bytes, with a bound where only some neighbours tell theirs."""
    if row.use == "graph":
        return "-"
    if row.bytes is None:
        return "not known"
    text = format_bytes(row.bytes)
    return text if row.links_known == row.links else f"{text} or more"


def order_text(row: SequenceRow) -> str:
    """`aten::mul x2 > aten::add`, and how many follow those that are named."""
    words = [
        op or fold_kernel_name(name, _NAME) for op, name in zip(row.ops, row.names, strict=True)
    ]
    runs = [(word, sum(1 for _ in group)) for word, group in groupby(words)]
    text = " > ".join(word if count == 1 else f"{word} x{count}" for word, count in runs)
    more = row.kernels - len(row.names)
    return f"{text} > {more} more" if more else text


def sequences_text(table: Sequences, top: int, _width: int | None = None) -> str:
    """The rows as aligned lines below what holds of all."""
    shown = sequence_table(table, top)
    lines = [sequence_heading(table)]
    lines += listing(shown, heads=True) if shown.rows else ["none of them recur in the same order"]
    if shown.left_out:
        lines.append(f"and {shown.left_out} more rows (--top)")
    return "\n".join([*lines, *sequence_notes(table)]) + "\n"


def sequences_markdown(table: Sequences, top: int) -> str:
    """The rows below a heading."""
    text = heading("By sequence") + f"{escaped(sequence_heading(table))}.\n\n"
    return text + markdown(sequence_table(table, top))


def sequences_csv(table: Sequences, *, raw: bool = False) -> str:
    """One row per sequence; `sequence` has the names of its kernels (of a long one the first)."""
    return csv_text(sequence_table(table, len(table.rows)), raw=raw)
