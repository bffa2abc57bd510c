"""Memory against batch size, and the largest batch that fits: sentences, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.memory.batches import REACH
from profharness.analysis.memory.records import BatchMemory, BatchPeak
from profharness.report.table import Cell, Column, Table
from profharness.stats.estimate import Estimate
from profharness.units import format_bytes, format_number, format_share

_NOTABLE = 1 << 20
"""Bytes: what never holds more is not told of."""
_SEEN = 0.001
"""An interval narrower than this share of its value has ends that read as the value does."""
TITLE = "Memory by batch size"
_COLUMNS = (
    Column("memory", key="place"),
    Column("batch", "right", key="batch_size"),
    Column("peak", "right", "the most that the allocator gave out", key="peak_bytes", unit="B"),
    Column(
        "by the line",
        "right",
        "fixed part and part per item",
        key="line_bytes",
        unit="B",
        wide=True,
    ),
    Column(
        "reserved", "right", "the most that the allocator had taken", key="reserved_bytes", unit="B"
    ),
    Column(
        "held by others",
        "right",
        "other programs, the driver, and what the allocator does not record",
        key="elsewhere_bytes",
        unit="B",
    ),
)


def notable(rows: Sequence[BatchMemory]) -> list[BatchMemory]:
    """Those of a memory of which some batch takes a part worth telling."""
    return [row for row in rows if row.peaks[-1].peak_bytes >= _NOTABLE]


def name(row: BatchMemory) -> str:
    """`device 0 by batch size`, and before it the series where it has a name."""
    place = "host" if row.device is None else f"device {row.device}"
    return f"{row.series}: {place}" if row.series else place


def sentences(row: BatchMemory) -> Iterator[str]:
    """What the peaks say, in sentences: the line, and the largest batch."""
    if row.fixed_bytes is not None and row.item_bytes is not None:
        yield _line_text(row, row.fixed_bytes, row.item_bytes)
    if row.holds is False:
        yield (
            f"the peaks lie on no line (up to {format_share(row.misfit or 0)} off): nothing is "
            f"said beyond batch {format_number(row.limit)}"
        )
    elif row.largest_batch is not None and row.capacity_bytes:
        yield f"{_largest_text(row, row.largest_batch, row.capacity_bytes)}{_beside(row)}"
    if row.needs:
        yield f"more needs {row.needs}"


def _line_text(row: BatchMemory, fixed: Estimate, per_item: Estimate) -> str:
    sizes = [one.batch_size for one in row.peaks if one.batch_size >= (row.from_batch or 0)]
    of = f"{len(sizes)} batch sizes from {sizes[0]} to {sizes[-1]}"
    off = "" if row.misfit is None else f", at most {format_share(row.misfit)} off"
    if row.misfit is not None and row.misfit < _SEEN / 2:
        off = ", which lie on one line"
    return f"{_bytes(fixed)} and {_bytes(per_item)} per item, by {of}{off}"


def _bytes(estimate: Estimate) -> str:
    """`2.4 MiB (2.3 MiB to 2.5 MiB)`; without an interval that is narrower than its digits."""
    value = round(estimate.value or 0)
    if estimate.low is None or estimate.high is None:
        return format_bytes(value)
    if estimate.high - estimate.low <= max(_SEEN * abs(value), 2):
        return format_bytes(value)
    return f"{format_bytes(value)} ({format_bytes(estimate.low)} to {format_bytes(estimate.high)})"


def _largest_text(row: BatchMemory, largest: Estimate, capacity: int) -> str:
    of = format_bytes(capacity)
    if len(row.peaks) == 1 or row.grows is False:
        return _at_least(row, largest, of)
    beyond = f"nothing is said beyond {REACH} times the largest that was measured"
    if largest.low is not None and largest.low >= row.limit:
        return f"at least batch {format_number(row.limit)} fits in {of} ({beyond})"
    if largest.value is None and largest.low is None:
        return f"at least batch {format_number(row.limit)} is expected to fit in {of} ({beyond})"
    if largest.low is None:
        return (
            f"the largest batch that fits in {of} is {_number(largest.value)}; "
            "two sizes give no interval"
        )
    high = "open" if largest.high is None else _number(largest.high)
    ends = f"95 % interval {_number(largest.low)} to {high}"
    if largest.value is None:
        return f"at least batch {_number(largest.low)} fits in {of} ({ends}; {beyond})"
    return f"the largest batch that fits in {of} is {_number(largest.value)} ({ends})"


def _number(value: float | None) -> str:
    return "" if value is None else format_number(value)


def _at_least(row: BatchMemory, largest: Estimate, of: str) -> str:
    """Where the peaks bound the largest batch from below alone."""
    if row.grows is False:
        return (
            f"the peak hardly grows up to batch {format_number(row.peaks[-1].batch_size)}, so that "
            f"another instant may be that of larger ones: at least batch {_number(largest.low)} "
            f"fits in {of}"
        )
    size = format_number(row.peaks[0].batch_size)
    text = (
        f"at least batch {_number(largest.low)} fits in {of}, if memory grows no faster than the "
        f"batch (from batch {size} alone)"
    )
    if largest.value is None or row.before_bytes is None:
        return text
    return (
        f"{text}; {_number(largest.value)} if the {format_bytes(row.before_bytes)} that were held "
        "before the recording do not grow"
    )


def _beside(row: BatchMemory) -> str:
    others = row.peaks[-1].elsewhere_bytes
    if others is None:
        return ", were nothing else in it"
    return f", beside {format_bytes(others)} that others hold"


def batch_table(rows: Sequence[BatchMemory]) -> Table | None:
    """A row per measured batch size of each series and place; None where there are not several."""
    shown = [row for row in notable(rows) if len(row.peaks) > 1]
    if not shown:
        return None
    cells = [_cells(row, one) for row in shown for one in row.peaks]
    kept = [at for at in range(len(_COLUMNS)) if any(row[at].text for row in cells)]
    return Table(
        TITLE,
        tuple(_COLUMNS[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in cells),
        note=_NOTE,
    )


_NOTE = (
    "The line goes through the largest sizes, as many as lie on one. What is reserved beyond the "
    "peak and what others hold is no room for larger batches."
)


def _cells(row: BatchMemory, one: BatchPeak) -> tuple[Cell, ...]:
    line = None
    if row.fixed_bytes is not None and row.item_bytes is not None and row.holds is not False:
        line = (row.fixed_bytes.value or 0) + (row.item_bytes.value or 0) * one.batch_size
    return (
        Cell(name(row), value=name(row)),
        Cell(format_number(one.batch_size), value=one.batch_size),
        *(_size(value) for value in (one.peak_bytes, line)),
        *(_size(value) for value in (one.reserved_bytes, one.elsewhere_bytes)),
    )


def _size(value: float | None) -> Cell:
    return Cell() if value is None else Cell(format_bytes(value), value=round(value))
