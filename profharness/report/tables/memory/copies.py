"""Copies by direction and size for readers: lines of text and rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.memory.records import CopyRow
from profharness.report.table import Cell, Column, Table, first_rows
from profharness.report.text.figures import quantity_text
from profharness.report.text.listing import listing
from profharness.units import format_bytes, format_ns, format_number, format_share

SHOWN = 8
_COSTLY = 0.01
_ITEMS = 3
_DIRECTIONS = {
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "device to itself",
    "p2p": "device to device",
    "h2h": "host to host",
    "fill": "fill",
    "unknown": "direction not known",
}
_NOT_KNOWN = "not known"
_COLUMNS = (
    Column("direction", meaning="from where to where, and the host's kind of memory if recorded"),
    Column("size"),
    Column("calls", "right"),
    Column("bytes", "right", wide=True),
    Column("time", "right", "sum over the copies"),
    Column("bandwidth", "right", "bytes of all over the time of all"),
    Column("median", "right", "of the bandwidths of single copies", wide=True),
    Column("of the window", "right", "share of the window in which such a copy ran"),
    Column("exposed", "right", "share of the window in which it ran and no kernel did"),
    Column(
        "host waited", "right", "copies whose launching call returned only after they had ended"
    ),
)


def lines(rows: Sequence[CopyRow]) -> Iterator[str]:
    """The section of `metrics`; nothing without copies."""
    table = copies_table(rows)
    if table is None:
        return
    shown = first_rows(table, SHOWN)
    yield "copies:"
    yield from listing(shown, indent=2, heads=True)
    if shown.left_out:
        yield f"  and {shown.left_out} more rows"


def copy_items(rows: Sequence[CopyRow]) -> list[str]:
    """The rows that cost most of the window, in words: those that take at least 1 % of it."""
    costly = sorted(
        (row for row in rows if (row.exposed_ns or 0) >= _COSTLY * max(row.window_ns, 1)),
        key=lambda row: -(row.exposed_ns or 0),
    )
    return [_item(row) for row in costly[:_ITEMS]]


def _item(row: CopyRow) -> str:
    exposed = format_share((row.exposed_ns or 0) / max(row.window_ns, 1))
    size = "" if row.bytes is None else f" of {format_bytes(row.bytes / row.calls)}"
    rate = _rate(row.bytes_per_s)
    speed = f" at {rate}" if rate else ", size not known"
    return f"{title(row)} {exposed} exposed: {format_number(row.calls)} copies{size}{speed}"


def copies_table(rows: Sequence[CopyRow]) -> Table | None:
    """One row per direction, kind of host memory and class of size; None without copies."""
    if not rows:
        return None
    return Table(
        "Copies by direction and size", _COLUMNS, tuple(map(_cells, rows)), note=_note(rows)
    )


def _note(rows: Sequence[CopyRow]) -> str:
    """How many copies there are, and what is not known of them."""
    calls = sum(row.calls for row in rows)
    unsized = sum(row.calls for row in rows if row.bytes is None)
    things = "copy or fill starts" if calls == 1 else "copies and fills start"
    said = f"{format_number(calls)} {things} in the window. Exposed is what no kernel covers."
    if not unsized:
        return said
    return f"{said} The tool recorded no size of {format_number(unsized)} of them."


def _cells(row: CopyRow) -> tuple[Cell, ...]:
    window = max(row.window_ns, 1)
    return (
        Cell(title(row)),
        Cell(size_class(row)),
        Cell(format_number(row.calls)),
        Cell(_NOT_KNOWN if row.bytes is None else format_bytes(row.bytes)),
        Cell(format_ns(row.total_ns)),
        Cell(_rate(row.bytes_per_s)),
        Cell(_rate(row.bytes_per_s_median)),
        Cell(format_share(row.busy_ns / window), provenance=format_ns(row.busy_ns)),
        Cell(
            "" if row.exposed_ns is None else format_share(row.exposed_ns / window),
            provenance="" if row.exposed_ns is None else format_ns(row.exposed_ns),
        ),
        Cell(_waited(row)),
    )


def title(row: CopyRow) -> str:
    """`host to device, pageable`, or `fill by kernel __amd_rocclr_fillBufferAligned`."""
    name = _DIRECTIONS.get(row.direction, row.direction)
    if row.kernel:
        return f"{'copy, ' if row.direction == 'unknown' else ''}{name} (kernel {row.kernel})"
    return f"{name}, {row.host_memory}" if row.host_memory else name


def size_class(row: CopyRow) -> str:
    """`4.0 KiB to 64.0 KiB`, `up to 4.0 KiB`, `from 4.0 GiB`."""
    if row.least_bytes is None:
        return _NOT_KNOWN
    if row.below_bytes is None:
        return f"from {_bound(row.least_bytes)}"
    if not row.least_bytes:
        return f"below {_bound(row.below_bytes)}"
    return f"{_bound(row.least_bytes)} to {_bound(row.below_bytes)}"


def _bound(size: int) -> str:
    return format_bytes(size).replace(".0 ", " ")


def _rate(bytes_per_s: float | None) -> str:
    return "" if bytes_per_s is None else quantity_text(bytes_per_s, "B/s")


def _waited(row: CopyRow) -> str:
    if row.blocking_calls is None:
        return ""
    of = "" if row.linked_calls == row.calls else f" of {format_number(row.linked_calls)}"
    return f"{format_number(row.blocking_calls)}{of}"
