"""The critical path as tables of the page: by class, and its largest rows."""

from __future__ import annotations

from profharness.analysis.critical.classes import HOST_PREFIX, LABELS
from profharness.analysis.critical.records import CriticalPath, PathRow, RankPath
from profharness.report.table import Cell, Column, Table
from profharness.report.text.folding import cut_middle, fold_kernel_name
from profharness.rundir.shown.screen import one_line
from profharness.units import format_ns, format_number, format_share

_ROWS = 20
_PROCESSES = 8
_NAME = 60


def critical_tables(path: CriticalPath | None) -> tuple[Table, ...]:
    """The classes of the paths of all processes (the first eight), and the largest rows of the
    longest path; nothing without a path.
    """
    if path is None or not path.window_ns:
        return ()
    longest = max(path.processes, key=lambda process: process.window_ns)
    return (_classes(path), _largest(longest, several=len(path.processes) > 1))


def _classes(path: CriticalPath) -> Table:
    shown = path.processes[:_PROCESSES] if len(path.processes) > 1 else ()
    rows = []
    for key, part in path.segments.items():
        cells = [
            Cell(LABELS[key]),
            Cell(format_share(part.ns / path.window_ns), bar=100 * part.ns / path.window_ns),
            Cell(format_ns(part.ns)),
            Cell(format_number(part.segments)),
        ]
        for process in shown:
            held = process.segments.get(key)
            cells.append(Cell(format_share(held.ns / process.window_ns) if held else ""))
        rows.append(tuple(cells))
    columns = (
        Column("the path is in"),
        Column("share", "right"),
        Column("time", "right"),
        Column("segments", "right"),
        *(Column(one_line(process.process, 24), "right") for process in shown),
    )
    return Table(
        "The critical path by class",
        columns,
        tuple(rows),
        left_out=max(len(path.processes) - _PROCESSES, 0),
    )


def _largest(path: RankPath, *, several: bool) -> Table:
    named = [row for row in path.rows if row.name][:_ROWS]
    of = f" of {one_line(path.process, 40)}" if several else ""
    return Table(
        f"What lies on it most{of}",
        (
            Column("class"),
            Column("name", wraps=True),
            Column("share", "right"),
            Column("time", "right"),
            Column("times", "right"),
        ),
        tuple(_row(row) for row in named),
    )


def _row(row: PathRow) -> tuple[Cell, ...]:
    on_host = row.kind.startswith(HOST_PREFIX)
    plain = one_line(row.name)
    name = cut_middle(plain, _NAME) if on_host else fold_kernel_name(row.name, _NAME)
    return (
        Cell(LABELS[row.kind]),
        Cell(name, full=plain, below=f"of {one_line(row.operator, _NAME)}" if row.operator else ""),
        Cell(format_share(row.share)),
        Cell(format_ns(row.ns)),
        Cell(format_number(row.segments)),
    )
