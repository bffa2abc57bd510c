"""`profharness hotspots`: where device (or operator) time went, as a table, CSV or JSON."""

from __future__ import annotations

import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.errors import UsageError
from profharness.findings import problem_text
from profharness.options.many_files_flags import Dask, DaskWorkers, Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from profharness.analysis.records import HotspotRow, Hotspots
    from profharness.trace.model import Problem, Trace

TABLE_ROWS = 20
_NARROWEST_NAME = 24


class By(str, Enum):
    """What rows stand for."""

    KERNEL = "kernel"
    OP = "op"
    CATEGORY = "category"
    CALL = "call"


class Form(str, Enum):
    """How the table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def hotspots(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="A run directory, or trace files: their records count together.",
            metavar="RUN|FILE...",
        ),
    ],
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            help=(
                "Rows: kernel, op, category or (host) call (default: kernel; "
                "op without device kernels; call with neither)."
            ),
        ),
    ] = None,
    pass_name: Annotated[
        str | None, typer.Option("--pass", help="Pass of a run (default: the first with kernels).")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, help=f"Rows to print (default: {TABLE_ROWS} in a table, else all)."
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="table, csv or json.")] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    ops: Annotated[
        bool,
        typer.Option(
            "--ops",
            help="Read the operators of trace files too: the one that launched each kernel.",
        ),
    ] = False,
    samples: Annotated[
        str,
        typer.Option(
            "--samples",
            help=(
                "Of a run: also the mean of these telemetry metrics while each row ran, "
                "as power,clock."
            ),
            metavar="LIST",
        ),
    ] = "",
    processes: Processes = None,
    dask: Dask = None,
    dask_workers: DaskWorkers = 0,
) -> None:
    """Show where device (or operator) time went."""
    from profharness.understand.load import check_paths, load

    check_paths(paths)
    if len(paths) == 1 and paths[0].is_dir():
        loaded = load(paths)
        trace, manifest = loaded.trace, loaded.manifest
        order = None if manifest is None else manifest.kernel_order()
        table, problems = chosen(trace, by, pass_name, samples, order), trace.problems
        others = _others(table, lambda other: chosen(trace, other, pass_name, order=order))
    else:
        from profharness.understand.many.jobs import Workers
        from profharness.understand.many.tables import hotspots_of_files

        if samples:
            raise UsageError("--samples is for one run", "trace files hold no telemetry")
        if pass_name is not None:
            raise UsageError(f"--pass {pass_name}: no such pass", "loose files have no passes")
        workers = Workers(processes, dask, dask_workers)
        table, unread, problems = hotspots_of_files(
            paths,
            None if by is None else by.value,
            ops=ops,
            shapes=json or form is not Form.TABLE,
            workers=workers,
        )
        for one in unread:
            typer.echo(f"error: {one.message}; the file is left out", err=True)
        others = _others(
            table, lambda other: hotspots_of_files(paths, other.value, workers=workers)[0]
        )
    say(problems, notes=not table.rows)
    if not table.rows:
        typer.echo(
            f"{paths[0]}: nothing to list by {table.by}; "
            f"{others or 'a run records operators with --profile torch, kernels with rocprofv3 too'}",
            err=True,
        )
    sys.stdout.write(text_of(table, Form.JSON if json else form, top))


_LISTED = {
    By.OP: "its operators are listed by --by op",
    By.CALL: "its host calls are listed by --by call",
}


def _others(table: Hotspots, table_by: Callable[[By], Hotspots]) -> str:
    """Where an empty table's file holds other rows, the option that lists them."""
    return (
        ""
        if table.rows
        else next(
            (says for by, says in _LISTED.items() if by.value != table.by and table_by(by).rows), ""
        )
    )


def say(problems: Sequence[Problem], *, notes: bool = False) -> None:
    """What the readers lost or repaired, errors first, on stderr; their notes are for `metrics`,
    unless asked for.
    """
    serious = [problem for problem in problems if notes or problem.severity != "info"]
    for problem in sorted(serious, key=lambda one: one.severity):
        typer.echo(
            f"{problem.severity}: {problem_text(problem.source, problem.count, problem.message)}",
            err=True,
        )


def chosen(
    trace: Trace,
    by: By | None,
    pass_name: str | None,
    samples: str = "",
    order: Mapping[str, int] | None = None,
) -> Hotspots:
    """The table of one pass, with the telemetry asked for; `order` says which layer's kernels are
    taken first. Raises UsageError for a pass or metric that the trace does not hold.
    """
    import msgspec

    from profharness.analysis.kernels.columns import with_rates
    from profharness.analysis.kernels.counter_table import counter_rows
    from profharness.analysis.kernels.facts import KernelFacts, Yardstick
    from profharness.analysis.kernels.hotspots import listed, tally
    from profharness.analysis.run import kernel_pass as passes

    name, records = passes.choose(trace, pass_name, order=order)
    facts = KernelFacts(records, Yardstick(counted=trace if len(trace.counters) else None))
    table = msgspec.structs.replace(
        with_rates((listed(records) if by is None else tally(records, by.value)).table(), facts),
        pass_name=name,
    )
    if table.by == "kernel":
        table = msgspec.structs.replace(table, counters=counter_rows(trace))
    if not samples:
        return table
    if table.by == "call":
        raise UsageError(
            "--samples is for kernels and operators, and these rows are host calls", "leave it out"
        )
    from profharness.analysis.kernels.hotspot_samples import with_samples
    from profharness.analysis.power.sample_joins import named

    return with_samples(table, records, trace, named(samples, trace))


def text_of(table: Hotspots, form: Form, top: int | None) -> str:
    """The table in the form asked for, cut to `top` rows; totals and shares stay those of the whole
    table.
    """
    import msgspec

    if form is Form.TABLE:
        # a file or pipe gets full names: there is no width to fit into
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return plain_table(table, top or TABLE_ROWS, width)
    cut = msgspec.structs.replace(table, rows=table.rows[:top])
    if form is Form.CSV:
        from profharness.report.tables.csv import hotspots_csv

        return hotspots_csv(cut)
    return msgspec.json.format(msgspec.json.encode(cut), indent=2).decode() + "\n"


def plain_table(table: Hotspots, top: int, width: int | None) -> str:
    """Aligned columns, the name last; names are folded to `width` characters per line, or left
    whole for None.
    """
    from profharness.report.text.folding import fold_kernel_name
    from profharness.report.text.samples import sample_notes, sampled_metrics
    from profharness.trace import log_names
    from profharness.units import format_ns, format_number

    rows = table.rows[:top]
    metrics = sampled_metrics(table.rows)
    head = ("share", "total", "calls", "mean", "min", "max", *metrics, "category")
    cells = [_cells(row, metrics) for row in rows]
    widths = [max(len(line[column]) for line in (head, *cells)) for column in range(len(head))]
    lead = sum(widths) + 2 * len(widths)
    room = None if width is None else max(width - lead, _NARROWEST_NAME)
    names = [row.name if room is None else fold_kernel_name(row.name, room) for row in rows]
    lines = [
        f"by {table.by}, {format_ns(table.total_ns)} in "
        f"{format_number(sum(row.calls for row in table.rows))} calls"
        + (f", pass {table.pass_name}" if table.pass_name else "")
        + _busy(table)
    ]
    for line, name in zip((head, *cells), ("name", *names), strict=True):
        figures = [text.rjust(size) for text, size in zip(line[:-1], widths[:-1], strict=True)]
        lines.append("  ".join([*figures, line[-1].ljust(widths[-1]), name]).rstrip())
    if len(table.rows) > top:
        lines.append(f"and {format_number(len(table.rows) - top)} more rows (--top)")
    if (
        any(row.category not in (log_names.SUBMISSIONS, log_names.LINES) for row in rows)
        and table.by == "call"
    ):
        lines.append("host calls: the time of one holds that of the calls inside it")
    lines += sample_notes(rows)
    if table.counters:
        from profharness.report.tables.counters import lines as counter_lines

        lines += counter_lines(table.counters, {row.name for row in rows})
    return "\n".join(lines) + "\n"


def _busy(table: Hotspots) -> str:
    from profharness.units import format_ns, format_share

    if not table.device_span_ns or table.busy_ns is None:
        return ""
    return (
        f"; kernels ran {format_share(table.busy_ns / table.device_span_ns)} of "
        f"{format_ns(table.device_span_ns)} of device time"
    )


def _cells(row: HotspotRow, metrics: Sequence[str]) -> tuple[str, ...]:
    from profharness.report.text.samples import sample_text
    from profharness.units import format_ns, format_number, format_share

    extremes = ["-" if value is None else format_ns(value) for value in (row.min_ns, row.max_ns)]
    return (
        format_share(row.share),
        format_ns(row.total_ns),
        format_number(row.calls),
        format_ns(row.mean_ns),
        *extremes,
        *(sample_text(row, metric) for metric in metrics),
        row.category,
    )
