"""Tables of how well the device was used: operators by what they would give back, and their
hardware counters (docs/metrics.md#device-use).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from profharness.analysis.kernels.ceilings import NO_CEILING
from profharness.analysis.kernels.mangled import readable
from profharness.analysis.use.records import (
    DeviceUse,
    FilesRow,
    FilesUse,
    OperatorCounter,
    UseRow,
)
from profharness.report.table import Cell, Column, Table
from profharness.report.tables.counters import COUNTERS, value_text
from profharness.report.tables.hotspot_names import types_text
from profharness.report.text.figures import si_text
from profharness.report.text.folding import numbered, whole_names
from profharness.units import format_ns, format_number, format_share

MOST_ROWS = 25
"""The page shows as many operators; summary.json holds all."""
WORTH_EXCESS, WORTH_SHARE = 0.001, 0.01
"""Shares of all device time, as excess or as time of any work, below which an operator is left out
of the page.
"""
OPERATORS = 8
"""The table of counters shows at most this many operators."""
_NUMBER = 4
"""Characters for the number of a label that is like another one."""

_COLUMNS = (
    Column("operator", key="operator"),
    Column("calls", "right", key="calls", wide=True),
    Column(
        "excess",
        "left",
        "time above the least that the ceilings allow: what a perfect kernel would give back",
        key="excess_ns",
    ),
    Column(
        "device time",
        "right",
        "of its kernels, copies and fills; where operators nested in it do its work, of these",
        key="device_ns",
    ),
    Column("share", "right", "of all device time", key="share"),
    Column("FLOP/s", "right", "while its known work ran", key="flops_per_s"),
    Column(
        "bytes/s", "right", "least bytes, while its known work ran", key="bytes_per_s", wide=True
    ),
    Column("of peak", "right", "the larger share of the two ceilings", key="peak_share"),
    Column("limiter", key="limiter", meaning="what held most of its kernel time back"),
)
_PER_FILE = Column(
    "per file",
    "right",
    "the least and the most device time of one of the files that recorded operators",
    key="per_file",
    wide=True,
)
"""After the device time, of several files."""
_AFTER = [column.key for column in _COLUMNS].index("device_ns") + 1


def operator_table(use: DeviceUse | None, most: int = MOST_ROWS) -> Table | None:
    """Operators with the most excess first; None where none has device time."""
    if use is None or not use.operators:
        return None
    worth = [
        row
        for row in use.operators
        if (row.excess_ns or 0.0) >= WORTH_EXCESS * use.device_ns or row.share >= WORTH_SHARE
    ]
    shown = (worth or list(use.operators))[:most]
    largest = shown[0].excess_ns or 0.0
    columns: tuple[Column, ...] = _COLUMNS
    rows = tuple(_row(row, largest) for row in shown)
    if isinstance(use, FilesUse) and use.files > 1:
        columns = (*columns[:_AFTER], _PER_FILE, *columns[_AFTER:])
        rows = tuple(
            (*cells[:_AFTER], _per_file(row), *cells[_AFTER:])
            for row, cells in zip(shown, rows, strict=True)
        )
    return Table("Operators by excess", columns, rows, left_out=len(use.operators) - len(shown))


def _per_file(row: UseRow) -> Cell:
    if not isinstance(row, FilesRow):
        return Cell()
    low, high = (format_ns(ns, 3) for ns in (row.low_ns, row.high_ns))
    return Cell(low if low == high else f"{low} to {high}", value=row.high_ns)


def _row(row: UseRow, largest: float) -> tuple[Cell, ...]:
    return (
        Cell(readable(row.name), value=row.name),
        Cell(format_number(row.calls), value=row.calls),
        Cell()
        if row.excess_ns is None
        else Cell(
            format_ns(row.excess_ns, 3),
            value=row.excess_ns,
            bar=round(100 * row.excess_ns / largest, 1) if largest else 0.0,
        ),
        Cell(format_ns(row.device_ns, 3), value=row.device_ns),
        Cell(format_share(row.share), value=row.share),
        Cell(_rate(row.flops_per_s, "FLOP/s"), value=row.flops_per_s),
        Cell(_rate(row.bytes_per_s, "B/s"), value=row.bytes_per_s),
        Cell("" if row.peak_share is None else format_share(row.peak_share), value=row.peak_share),
        Cell(row.limiter or "", value=row.limiter),
    )


def _rate(value: float | None, unit: str) -> str:
    return "" if value is None else si_text(value, unit)


def known_work_text(use: DeviceUse | None) -> str:
    """How much of the matrix work is known, and of the rest why not; empty without matrix
    kernels.
    """
    known = None if use is None else use.known
    share = None if known is None else known.share
    if known is None or share is None:
        return ""
    text = (
        f"Matrix kernels took {format_ns(known.matrix_kernel_ns, 3)}; the work of "
        f"{format_share(share)} of that time is known."
    )
    if known.reasons:
        rest = ", ".join(
            f"{reason} {format_share(ns / known.matrix_kernel_ns)}"
            for reason, ns in known.reasons.items()
        )
        text += f" The rest: {rest}."
    return text


def files_text(use: DeviceUse | None) -> str:
    """How several files were joined, and which of them add no work; empty for one."""
    if not isinstance(use, FilesUse) or use.files < 2:
        return ""
    said = f"{format_number(use.files)} together: calls, times and work are summed over them."
    for one in use.unknown:
        whose = one.first if one.files == 1 else f"first {one.first}"
        adds = "adds no work: it needs" if one.files == 1 else "add no work: they need"
        said += f" {format_number(one.files)} of them ({whose}) {adds} {one.needs}."
    return said


def outside_text(use: DeviceUse | None) -> str:
    """The share of device time that stands in no row; empty without any, and without rows."""
    if use is None or not use.operators or not use.outside_ns:
        return ""
    return (
        f"{format_share(use.outside_ns / use.device_ns)} of the device time was launched outside "
        "of every recorded operator and stands in no row."
    )


def ceilings_text(use: DeviceUse | None) -> str:
    """What gives the ceilings that are not known although work is; empty where all are."""
    if use is None or use.needs or (use.roofs and use.bandwidth is not None):
        return ""
    lacking = "bandwidth" if use.roofs else "compute"
    return f"the {lacking} ceiling is not known: it takes {NO_CEILING}"


def operator_counter_table(use: DeviceUse | None) -> Table | None:
    """Counters by operator, those with most kernel time first; None without any."""
    rows = () if use is None else use.counters
    operators = list(dict.fromkeys(row.operator for row in rows))[:OPERATORS]
    chosen = [
        row
        for name in operators
        for row in [row for row in rows if row.operator == name][:COUNTERS]
    ]
    if not chosen:
        return None
    return Table(
        "Hardware counters by operator",
        (
            Column("operator", key="operator"),
            Column("counter", key="counter"),
            Column("mean per dispatch", "right", key="mean"),
            Column("unit", "left", "count where it is not known", key="unit"),
            Column("dispatches", "right", key="dispatches"),
            Column("sum", "right", key="sum"),
            Column("matched", "left", _MATCHED, key="matched"),
        ),
        tuple(_counter_row(row) for row in chosen),
        left_out=len(rows) - len(chosen),
    )


_MATCHED = (
    "recorded: under its operator in the counter pass itself; in order: the same kernel of both "
    "passes, one by one; by name: the mean over all dispatches of that kernel's name"
)


def _counter_row(row: OperatorCounter) -> tuple[Cell, ...]:
    matched = matched_text(row)
    return (
        Cell(row.operator, value=row.operator),
        Cell(row.counter, value=row.counter),
        Cell(value_text(row.mean), value=row.mean),
        Cell(row.unit, value=row.unit),
        Cell(format_number(row.dispatches), value=row.dispatches),
        Cell("" if row.sum is None else value_text(row.sum), value=row.sum),
        Cell(matched, value=matched),
    )


def matched_text(row: OperatorCounter) -> str:
    """How the dispatches of a row found their operator."""
    by_name = row.dispatches - row.recorded - row.in_order
    parts = {"recorded": row.recorded, "in order": row.in_order, "by name": by_name}
    present = {words: count for words, count in parts.items() if count}
    if len(present) == 1:
        return next(iter(present))
    return ", ".join(f"{format_number(count)} {words}" for words, count in present.items())


def inputs_text(shapes: str, most: int = 2, least_rank: int = 1) -> str:
    """The extents of the first tensors of a call, as `8944×1024, 1024×2816`, of those with at least
    `least_rank` of them where there are any; empty where the text holds none.
    """
    try:
        dims = msgspec.json.decode(shapes)
    except msgspec.DecodeError:
        return ""
    tensors = [dim for dim in dims if _extents(dim)] if isinstance(dims, list) else []
    tensors = [tensor for tensor in tensors if len(tensor) >= least_rank] or tensors
    return ", ".join("×".join(str(extent) for extent in tensor) for tensor in tensors[:most])


def _extents(dim: object) -> bool:
    return isinstance(dim, list) and bool(dim) and all(isinstance(extent, int) for extent in dim)


def labels(rows: Sequence[UseRow]) -> tuple[str, ...]:
    """What to call rows in a plot: the name without its namespace, with the extents of the first
    input, or of the first two, where others have the same name, then with the types of the inputs
    and the namespace. What an `addmm` adds is left out, as any vector beside matrices. Rows that
    still look alike are numbered.
    """
    full = whole_names([row.name for row in rows])
    short = [name.rpartition("::")[2] if _plain(name) else name for name in full]
    one, two = ([inputs_text(row.shapes, most, least_rank=2) for row in rows] for most in (1, 2))
    types = [types_text(row.shapes, row.dtypes) for row in rows]
    called = list(short)
    for round_ in ((short, one), (short, two), (short, two, types), (full, two, types)):
        texts = [" ".join(filter(None, words)) for words in zip(*round_, strict=True)]
        repeated = {name for name, count in Counter(called).items() if count > 1}
        called = [text if now in repeated else now for now, text in zip(called, texts, strict=True)]
    keys = [f"{row.name} {row.shapes} {row.dtypes}" for row in rows]
    return tuple(numbered(keys, called, max(map(len, called), default=0) + _NUMBER))


def _plain(name: str) -> bool:
    """Whether a name is an operator's, as `aten::mm`, and no kernel's signature."""
    return name.count("::") == 1 and not set(name) & set("<>() ")
