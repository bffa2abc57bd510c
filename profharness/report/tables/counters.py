"""Raw hardware counters for readers: lines of text below a table of kernels, and a table of the
page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from profharness.analysis.kernels.counter_records import ALL_KERNELS, CounterRow
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.figures import fraction_text, number_text
from profharness.report.text.folding import distinct_names
from profharness.report.text.listing import listing
from profharness.units import format_number

_SMALL = 1e-3
KERNELS = 5
COUNTERS = 24
"""The text shows at most this many kernels, and this many counters of each; the JSON holds all."""


def lines(rows: Sequence[CounterRow], shown: Collection[str] | None = None) -> Iterator[str]:
    """Kernel by kernel: mean per dispatch, number of dispatches and sum; then the metrics of a
    tool's own analysis. `shown` limits it to kernels of these names, and what is of all of them.
    """
    counted = [row for row in rows if row.dispatches]
    yield from _block("counters, mean per dispatch:", "counters", counted, shown)
    own = [row for row in rows if not row.dispatches]
    yield from _block("metrics of the tool's own analysis:", "metrics", own, shown)


def _block(
    title: str, what: str, rows: Sequence[CounterRow], shown: Collection[str] | None
) -> Iterator[str]:
    by_kernel: dict[str, list[CounterRow]] = {}
    for row in rows:
        if shown is None or row.kernel in shown or row.kernel == ALL_KERNELS:
            by_kernel.setdefault(row.kernel, []).append(row)
    if not by_kernel:
        return
    yield title
    short = _short_names(list(by_kernel)[:KERNELS])
    for kernel, kernel_rows in list(by_kernel.items())[:KERNELS]:
        yield f"  {short[kernel]}"
        yield from listing(_kernel_table(kernel, kernel_rows[:COUNTERS]), indent=4)
        if len(kernel_rows) > COUNTERS:
            yield f"    and {len(kernel_rows) - COUNTERS} more {what} (--json has all)"
    if len(by_kernel) > KERNELS:
        yield f"  and {len(by_kernel) - KERNELS} more kernels (--json has all)"


def _kernel_table(kernel: str, rows: Sequence[CounterRow]) -> Table:
    """Counter, mean, and in brackets what the mean is over."""
    cells = []
    for row in rows:
        total = "" if row.sum is None else f", sum {value_text(row.sum)}"
        calls = "dispatch" if row.dispatches == 1 else "dispatches"
        from_pass = f", pass {row.pass_name}" if row.pass_name else ""
        over = f"({format_number(row.dispatches)} {calls}{total}{from_pass})"
        cells.append(
            row_of(
                row.counter,
                f"{value_text(row.mean)} {row.unit}",
                over if row.dispatches else from_pass.removeprefix(", "),
            )
        )
    columns = (Column("counter"), Column("mean per dispatch", width=0), Column("dispatches"))
    return Table(kernel, columns, tuple(cells))


def counter_table(rows: Sequence[CounterRow]) -> Table | None:
    """The table of the page, cut as the text is; None without counters."""
    kernels = list(dict.fromkeys(row.kernel for row in rows))[:KERNELS]
    chosen = [
        row
        for kernel in kernels
        for row in [row for row in rows if row.kernel == kernel][:COUNTERS]
    ]
    if not chosen:
        return None
    short = _short_names(kernels)
    columns = (
        Column("kernel"),
        Column("counter"),
        Column("mean per dispatch", "right", "over the dispatches that have it"),
        Column("unit", "left", "count where it is not known"),
        Column("dispatches", "right"),
        Column("lowest", "right"),
        Column("highest", "right"),
        Column("sum", "right"),
    )
    return Table(
        "Hardware counters",
        columns,
        tuple(
            (
                Cell(short[row.kernel], provenance=row.kernel),
                Cell(row.counter),
                Cell(value_text(row.mean)),
                Cell(row.unit),
                Cell(format_number(row.dispatches) if row.dispatches else ""),
                Cell("" if row.low is None else value_text(row.low)),
                Cell("" if row.high is None else value_text(row.high)),
                Cell("" if row.sum is None else value_text(row.sum)),
            )
            for row in chosen
        ),
        left_out=len(rows) - len(chosen),
    )


def left_out(rows: Sequence[CounterRow]) -> str:
    """What the page's table does not show; empty where it shows all."""
    shown = counter_table(rows)
    rest = 0 if shown is None else shown.left_out
    return f"{format_number(rest)} more rows are in summary.json." if rest else ""


def value_text(value: float) -> str:
    """Whole numbers whole, others with four significant digits, thousands parted."""
    return fraction_text(value) if 0 < abs(value) < _SMALL else number_text(value)


def _short_names(kernels: Sequence[str]) -> dict[str, str]:
    return dict(zip(kernels, distinct_names(kernels, 100), strict=True))
