"""Tables of hotspots: as values for programs, and by kind for the page."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.records import HotspotRow, Hotspots, SampledRow, Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import finite
from profharness.report.text.folding import distinct_names
from profharness.units import format_ns, format_number, format_share

HOTSPOT_COLUMNS = (
    "name",
    "category",
    "calls",
    "total_ns",
    "share",
    "mean_ns",
    "median_ns",
    "min_ns",
    "max_ns",
    "std_ns",
    "kernel_ns",
    "workgroups",
    "workgroup_size",
    "op",
    "fill",
    "occupancy",
    "flops_per_s",
    "bytes_per_s",
    "shapes",
    "dtypes",
    "device_ns",
    "device_share",
    "device_inclusive_ns",
    "flops",
    "flops_calls",
    "flops_full",
    "bytes",
    "bytes_calls",
    "peak_share",
    "limiter",
    "excess_ns",
    "forward_op",
)
MOST_ROWS = 3_000
"""The page shows as many rows of each table; hotspots.csv holds all."""
_TITLES = {"kernel": "Kernels", "op": "Operations", "category": "Categories"}


def hotspot_values(table: Hotspots) -> Table:
    """One row per group in the table's order; times in ns, `share` between 0 and 1, a size as
    `256x1x1`.

    Telemetry of the rows comes last, each metric with its unit.
    """
    sampled = {
        name: figure.unit
        for row in table.rows[:1]
        if isinstance(row, SampledRow)
        for name, figure in row.samples.items()
    }
    columns = (
        *(Column(key=name) for name in HOTSPOT_COLUMNS),
        *(Column(key=name, unit=unit) for name, unit in sampled.items()),
    )
    return Table("hotspots", columns, tuple(_values(row, tuple(sampled)) for row in table.rows))


def _values(row: HotspotRow, sampled: Sequence[str]) -> tuple[Cell, ...]:
    size = row.workgroup_size
    given = {"workgroup_size": None if size is None else "x".join(str(part) for part in size)}
    samples = [row.samples[name].value for name in sampled] if isinstance(row, SampledRow) else []
    values = (given[key] if key in given else getattr(row, key) for key in HOTSPOT_COLUMNS)
    return tuple(Cell(value=value) for value in (*values, *samples))


def time_text(ns: float | None, unknown: str = "-", *, significant: int = 4) -> str:
    """A duration in its natural scale, `unknown` for None."""
    return unknown if ns is None else format_ns(ns, significant)


def hotspot_tables(summary: Summary) -> tuple[Table, ...]:
    """Kernels, then operations, then categories, for the page; empty ones are left out."""
    order = list(_TITLES)
    return tuple(
        _page_table(table)
        for table in sorted(summary.hotspots, key=lambda table: order.index(table.by))
        if table.rows
    )


_PAGE_COLUMNS = (
    Column("name", key="name"),
    Column("category", key="category", wide=True),
    Column("share", key="share"),
    Column("total", "right", key="total"),
    Column("kernel time", "right", key="kernel", wide=True),
    Column("calls", "right", key="calls"),
    Column("mean ± std", "right", key="mean"),
    Column("workgroups of size", "right", key="shape", wide=True),
)
_LEFT_OUT_IF_EMPTY = ("category", "kernel", "shape")


def _page_table(table: Hotspots) -> Table:
    longest = max(row.share or 0.0 for row in table.rows) or 1.0
    shown = table.rows[:MOST_ROWS]
    whole = [row.name for row in shown]
    names = distinct_names(whole) if table.by == "kernel" else whole
    rows = [_page_row(row, name, longest, table.by) for row, name in zip(shown, names, strict=True)]
    places = [
        at
        for at, column in enumerate(_PAGE_COLUMNS)
        if column.key not in _LEFT_OUT_IF_EMPTY or any(row[at].text for row in rows)
    ]
    pass_name = f", {table.pass_name} pass" if table.pass_name else ""
    return Table(
        _TITLES[table.by],
        tuple(_PAGE_COLUMNS[at] for at in places),
        tuple(tuple(row[at] for at in places) for row in rows),
        note=f"{total_text(table, 'in all')}{pass_name}",
        left_out=max(len(table.rows) - MOST_ROWS, 0),
    )


def total_text(table: Hotspots, place: str) -> str:
    """The time of all rows, and where: `1.2 ms in all`; that it is not known, where it is not."""
    if table.total_ns is None:
        return f"times not recorded {place}"
    return f"{format_ns(table.total_ns)} {place}"


def _page_row(row: HotspotRow, short: str, longest: float, by: str) -> tuple[Cell, ...]:
    """The cells of `_PAGE_COLUMNS`."""
    spread = row.std_ns if row.calls > 1 else None
    std = f" ± {format_ns(spread, 2)}" if spread is not None and finite(spread) is not None else ""
    of_kernel = by == "kernel"
    return (
        Cell(
            short,
            full=row.name if row.name != short else "",
            below=row.op or "" if of_kernel else "",
        ),
        Cell("" if by == "category" else row.category),
        Cell("-")
        if row.share is None
        else Cell(format_share(row.share), bar=round(100 * row.share / longest, 1)),
        Cell(time_text(row.total_ns), value=row.total_ns),
        Cell(time_text(row.kernel_ns, ""), value=row.kernel_ns),
        Cell(format_number(row.calls), value=row.calls),
        Cell(f"{time_text(row.mean_ns)}{std}", provenance=_spread(row), value=row.mean_ns),
        Cell(_shape(row) if of_kernel else ""),
    )


def _spread(row: HotspotRow) -> str:
    if row.min_ns is None or row.max_ns is None:
        return ""
    middle = "" if row.median_ns is None else f"median {format_ns(row.median_ns)}, "
    return f"{middle}from {format_ns(row.min_ns)} to {format_ns(row.max_ns)}"


def _shape(row: HotspotRow) -> str:
    size = "" if row.workgroup_size is None else "×".join(str(part) for part in row.workgroup_size)
    return (
        f"{format_number(row.workgroups)} of {size}" if row.workgroups is not None and size else ""
    )
