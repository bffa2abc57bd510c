"""A server's batches by kind, and its steady state."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.batches.records import Batches, BatchRow, SteadyBatches
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import quantity_text
from profharness.report.text.listing import listing
from profharness.units import format_ns, format_number

_COLUMNS = (
    Column("kind", key="kind"),
    Column("batches", "right", key="batches"),
    Column("sequences", "right", "mean of a batch", key="sequences"),
    Column("tokens read", "right", "of prompts", key="prefill_tokens"),
    Column("continued", "right", "tokens of sequences that are continued", key="decode_tokens"),
    Column("host", "right", "time of the marks", key="host_ns"),
    Column("device", "right", "time of the work that was launched inside", key="device_ns"),
    Column("busy", "right", "time in which a device did any of it", key="busy_ns"),
    Column("--step-range", key="step_range"),
)


def batch_table(batches: Batches) -> Table:
    """A row per kind."""
    return Table("Batches", _COLUMNS, tuple(map(_row, batches.rows)))


def _row(row: BatchRow) -> tuple[Cell, ...]:
    return (
        Cell(row.kind, value=row.kind),
        Cell(format_number(row.batches), value=row.batches),
        Cell(format_number(row.sequences, 1), value=row.sequences),
        _tokens(row.prefill_tokens),
        _tokens(row.decode_tokens),
        Cell(format_ns(row.host_ns), value=row.host_ns),
        Cell(format_ns(row.device_ns), value=row.device_ns),
        Cell(format_ns(row.busy_ns), value=row.busy_ns),
        Cell(f"'{row.step_range}'", value=row.step_range),
    )


def _tokens(count: int | None) -> Cell:
    return Cell("not known") if count is None else Cell(format_number(count), value=count)


def lines(batches: Batches) -> Iterator[str]:
    """The section of `metrics`."""
    yield "batches of the server:"
    yield from listing(batch_table(batches), indent=2, heads=True)
    if batches.steady is not None:
        yield f"  {steady_text(batches.steady, sum(row.batches for row in batches.rows))}"


def steady_text(steady: SteadyBatches, of: int) -> str:
    """Which batches are the steady state, and how fast they are."""
    count = steady.end - steady.first
    which = (
        f"batch {steady.first} of {of}"
        if count == 1
        else f"batches {steady.first} to {steady.end - 1} of {of}"
    )
    text = f"steady state: {which}, {format_number(steady.sequences, 1)} sequences each"
    if count == 1 or steady.tokens is None or not steady.span_ns:
        return text
    return f"{text}, {quantity_text(steady.tokens / steady.span_ns * 1e9, 'tokens/s')}"
