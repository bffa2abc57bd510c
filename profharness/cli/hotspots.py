"""`profharness hotspots`: where device (or operator) time went, as a table, CSV or JSON."""

from __future__ import annotations

import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.cli.several import Dask, DaskWorkers, Processes
from profharness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profharness.analysis.records import HotspotRow, Hotspots
    from profharness.trace.model import Problem, Trace

TABLE_ROWS = 20
_NARROWEST_NAME = 24


class By(str, Enum):
    """What rows stand for."""

    KERNEL = "kernel"
    OP = "op"
    CATEGORY = "category"


class Form(str, Enum):
    """How the table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def hotspots(
    paths: Annotated[list[Path], typer.Argument(help="A run directory, or trace files: their records count together.", metavar="RUN|FILE...")],
    by: Annotated[By | None, typer.Option("--by", help="Rows: kernel, op or category (default: kernel; op without device kernels).")] = None,
    pass_name: Annotated[str | None, typer.Option("--pass", help="Pass of a run (default: the first with kernels).")] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help=f"Rows to print (default: {TABLE_ROWS} in a table, else all).")] = None,
    form: Annotated[Form, typer.Option("--format", help="table, csv or json.")] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    ops: Annotated[bool, typer.Option("--ops", help="Read the operators of trace files too: the one that launched each kernel.")] = False,
    processes: Processes = None,
    dask: Dask = None,
    dask_workers: DaskWorkers = 0,
) -> None:
    """Show where device (or operator) time went."""
    from profharness.loading import check_paths, load

    check_paths(paths)
    if len(paths) == 1 and paths[0].is_dir():
        trace = load(paths).trace
        table, problems = chosen(trace, by, pass_name), trace.problems
        has_ops = not table.rows and by is not By.OP and bool(chosen(trace, By.OP, pass_name).rows)
    else:
        from profharness.jobs import Workers
        from profharness.tables import hotspots_of_files

        if pass_name is not None:
            raise UsageError(f"--pass {pass_name}: no such pass", "loose files have no passes")
        workers = Workers(processes, dask, dask_workers)
        table, unread, problems = hotspots_of_files(paths, None if by is None else by.value, ops=ops, workers=workers)
        for one in unread:
            typer.echo(f"error: {one.message}; the file is left out", err=True)
        has_ops = not table.rows and by is not By.OP and bool(hotspots_of_files(paths, By.OP.value, workers=workers)[0].rows)
    say(problems)
    if not table.rows:
        typer.echo(f"{paths[0]}: nothing to list by {table.by}{'; its operators are listed by --by op' if has_ops else ''}", err=True)
    sys.stdout.write(text_of(table, Form.JSON if json else form, top))


def say(problems: Sequence[Problem]) -> None:
    """What the readers lost or repaired, errors first, on stderr; their notes are for `metrics`."""
    serious = [problem for problem in problems if problem.severity != "info"]
    for problem in sorted(serious, key=lambda one: one.severity):
        typer.echo(f"{problem.severity}: {problem.source}: {problem.count} x {problem.message}", err=True)


def chosen(trace: Trace, by: By | None, pass_name: str | None) -> Hotspots:
    """The table of one pass. Raises UsageError for a pass that the trace does not hold."""
    import msgspec

    from profharness.analysis import passes
    from profharness.analysis.hotspots import grouped
    from profharness.analysis.kernel_columns import with_rates
    from profharness.analysis.kernel_facts import KernelFacts, Yardstick

    name, records = passes.choose(trace, pass_name)
    facts = KernelFacts(records, Yardstick(counted=trace if len(trace.counters) else None))
    return msgspec.structs.replace(with_rates(grouped(records, None if by is None else by.value), facts), pass_name=name)


def text_of(table: Hotspots, form: Form, top: int | None) -> str:
    """The table in the form asked for, cut to `top` rows; totals and shares stay those of the whole table."""
    import msgspec

    from profharness.report.csv import hotspots_csv

    if form is Form.TABLE:
        # a file or pipe gets full names: there is no width to fit into
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return plain_table(table, top or TABLE_ROWS, width)
    cut = msgspec.structs.replace(table, rows=table.rows[:top])
    if form is Form.CSV:
        return hotspots_csv(cut)
    return msgspec.json.format(msgspec.json.encode(cut), indent=2).decode() + "\n"


def plain_table(table: Hotspots, top: int, width: int | None) -> str:
    """Aligned columns, the name last; names are folded to `width` characters per line, or left whole for None."""
    from profharness.report.folding import fold_kernel_name
    from profharness.units import format_ns, format_number

    rows = table.rows[:top]
    head = ("share", "total", "calls", "mean", "min", "max", "category")
    cells = [_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in (head, *cells)) for column in range(len(head))]
    lead = sum(widths) + 2 * len(widths)
    room = None if width is None else max(width - lead, _NARROWEST_NAME)
    names = [row.name if room is None else fold_kernel_name(row.name, room) for row in rows]
    lines = [f"by {table.by}, {format_ns(table.total_ns)} in {format_number(sum(row.calls for row in table.rows))} calls"
             + (f", pass {table.pass_name}" if table.pass_name else "") + _busy(table)]
    for line, name in zip((head, *cells), ("name", *names), strict=True):
        figures = [text.rjust(size) for text, size in zip(line[:-1], widths[:-1], strict=True)]
        lines.append("  ".join([*figures, line[-1].ljust(widths[-1]), name]).rstrip())
    if len(table.rows) > top:
        lines.append(f"and {format_number(len(table.rows) - top)} more rows (--top)")
    return "\n".join(lines) + "\n"


def _busy(table: Hotspots) -> str:
    from profharness.units import format_ns, format_share

    if not table.device_span_ns or table.busy_ns is None:
        return ""
    return f"; kernels ran {format_share(table.busy_ns / table.device_span_ns)} of {format_ns(table.device_span_ns)} of device time"


def _cells(row: HotspotRow) -> tuple[str, ...]:
    from profharness.units import format_ns, format_number, format_share

    extremes = ["-" if value is None else format_ns(value) for value in (row.min_ns, row.max_ns)]
    return (format_share(row.share), format_ns(row.total_ns), format_number(row.calls), format_ns(row.mean_ns), *extremes, row.category)
