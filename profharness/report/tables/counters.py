"""Raw hardware counters for readers: lines of text below a table of kernels, and a table of the
page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from profharness.analysis.kernels.counter_records import CounterRow
from profharness.report.page.content import Head, Table
from profharness.report.tables.scan import Cell
from profharness.units import format_number

KERNELS = 5
COUNTERS = 24
"""Of as many kernels, and as many counters of each, the text tells; the JSON holds all."""


def lines(rows: Sequence[CounterRow], shown: Collection[str] | None = None) -> Iterator[str]:
    """Kernel by kernel: mean per dispatch, number of dispatches and sum. `shown` limits it to
    kernels of these names.
    """
    by_kernel: dict[str, list[CounterRow]] = {}
    for row in rows:
        if shown is None or row.kernel in shown:
            by_kernel.setdefault(row.kernel, []).append(row)
    if not by_kernel:
        return
    yield "counters, mean per dispatch:"
    for kernel, own in list(by_kernel.items())[:KERNELS]:
        yield f"  {_short(kernel)}"
        width = max(len(row.counter) for row in own[:COUNTERS])
        for row in own[:COUNTERS]:
            total = "" if row.sum is None else f", sum {value_text(row.sum)}"
            calls = "dispatch" if row.dispatches == 1 else "dispatches"
            yield (
                f"    {row.counter:<{width}}  {value_text(row.mean)} {row.unit}  "
                f"({format_number(row.dispatches)} {calls}{total}{_pass(row)})"
            )
        if len(own) > COUNTERS:
            yield f"    and {len(own) - COUNTERS} more counters (--json has all)"
    if len(by_kernel) > KERNELS:
        yield f"  and {len(by_kernel) - KERNELS} more kernels (--json has all)"


def table(rows: Sequence[CounterRow]) -> Table | None:
    """The table of the page, cut as the text is; None without counters."""
    kernels = list(dict.fromkeys(row.kernel for row in rows))[:KERNELS]
    chosen = [
        row
        for kernel in kernels
        for row in [one for one in rows if one.kernel == kernel][:COUNTERS]
    ]
    if not chosen:
        return None
    heads = (
        Head("kernel"),
        Head("counter"),
        Head("mean per dispatch", "num", "over the dispatches that have it"),
        Head("unit", "", "count where it is not known"),
        Head("dispatches", "num"),
        Head("lowest", "num"),
        Head("highest", "num"),
        Head("sum", "num"),
    )
    return Table(
        "Hardware counters",
        heads,
        tuple(
            (
                Cell(_short(row.kernel), tip=row.kernel),
                Cell(row.counter),
                Cell(value_text(row.mean)),
                Cell(row.unit),
                Cell(format_number(row.dispatches)),
                Cell(value_text(row.low)),
                Cell(value_text(row.high)),
                Cell("" if row.sum is None else value_text(row.sum)),
            )
            for row in chosen
        ),
    )


def left_out(rows: Sequence[CounterRow]) -> str:
    """What the page's table does not show; empty where it shows all."""
    found = table(rows)
    rest = len(rows) - (len(found.rows) if found is not None else 0)
    return f"{format_number(rest)} more rows are in summary.json." if rest else ""


def value_text(value: float) -> str:
    """Whole numbers in groups of thousands, others with six digits."""
    return (
        format_number(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    )


def _short(name: str) -> str:
    from profharness.report.text.folding import fold_kernel_name

    return fold_kernel_name(name, 100)


def _pass(row: CounterRow) -> str:
    return f", pass {row.pass_name}" if row.pass_name else ""
