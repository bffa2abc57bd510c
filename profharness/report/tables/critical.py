"""The critical path, what changes of it would be worth, and batch sizes as the others tell them, as
tables for every form of the report.
"""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.critical.classes import HOST_PREFIX, LABELS
from profharness.analysis.critical.records import (
    BatchForecast,
    CriticalPath,
    Forecast,
    PathRow,
    RankPath,
    StepForecast,
)
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.folding import cut_middle, fold_kernel_name
from profharness.rundir.shown.screen import one_line
from profharness.units import format_ns, format_number, format_share

_ROWS = 20
_PROCESSES = 8
_NAME = 60
_WORTH = 5
_MUCH = 0.1  # of the window: a forecast of graphs that gains so much is of a launch-bound one
_AGAINST = "each from the scan's other sizes"
_SIDES = "traced: under the profiler; bare: without it; error: of the forecast against the measured"


def critical_tables(path: CriticalPath | None, rows: int = _ROWS) -> tuple[Table, ...]:
    """The classes of the paths of all processes (the first eight), the largest `rows` of the
    longest path, what changes of it would be worth, and batch sizes; nothing without a path.
    """
    if path is None or not path.window_ns:
        return ()
    longest = longest_path(path)
    several = len(path.processes) > 1
    made = (
        _classes(path),
        _largest(longest, rows, several=several),
        worth_table(holding_path(path), several=several),
        batch_table(path.batches),
    )
    return tuple(table for table in made if table is not None and table.rows)


def longest_path(path: CriticalPath) -> RankPath:
    """The path that takes longest, of which rows and forecasts are shown."""
    return max(path.processes, key=lambda process: process.window_ns)


def holding_path(path: CriticalPath) -> RankPath:
    """The path of the process that holds most of the longest one: a change has to be made there."""
    longest = longest_path(path)
    most = max(longest.places, key=longest.places.__getitem__, default="")
    return next((process for process in path.processes if process.process == most), longest)


def path_name(path: RankPath) -> str:
    """What the path is of: a point of a scan, else a process."""
    return path.point or path.process


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
        *(Column(one_line(path_name(process), 24), "right", spare=1) for process in shown),
    )
    return Table(
        "The critical path by class",
        columns,
        tuple(rows),
        left_out=max(len(path.processes) - _PROCESSES, 0),
    )


def _largest(path: RankPath, rows: int, *, several: bool) -> Table:
    named = [row for row in path.rows if row.name][:rows]
    crosses = bool(path.places)
    of = f" of {one_line(path_name(path), 40)}" if several else ""
    return Table(
        f"What lies on it most{of}",
        (
            Column("class"),
            Column("name", wraps=True),
            Column("share", "right"),
            Column("time", "right"),
            Column("times", "right"),
            *([Column("on")] if crosses else []),
        ),
        tuple(
            (*_row(row), *(row_of(one_line(row.process, 24)) if crosses else ())) for row in named
        ),
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


def worth_table(path: RankPath, *, several: bool = False) -> Table | None:
    """The changes that shorten the window, the largest gain first; None where none was tried."""
    gaining = gains(path)
    if not gaining:
        return None
    unit = "step" if gaining[0].steps else "window"
    off = format_ns(abs(path.what_if[0].residual_ns))
    of = f" of {one_line(path_name(path), 40)}" if several else ""
    slowed = slowed_by_recording(gaining)
    return Table(
        f"What a change would be worth{of}",
        (
            Column("change", wraps=True),
            Column(f"{unit} now", "right"),
            Column("bound", "right"),
        ),
        tuple(_worth(made) for made in gaining[:_WORTH]),
        note=f"The replay without a change misses the measured window by {off}."
        + (f" {slowed}" if slowed else ""),
    )


def slowed_by_recording(forecasts: Sequence[Forecast]) -> str:
    """What recording does to a forecast of graphs that gains much; empty without one."""
    graphs = [made for made in forecasts if made.change == "graphs"]
    if not any(made.window_ns - made.replayed_ns >= _MUCH * made.window_ns for made in graphs):
        return ""
    return (
        "Recording itself slows a host that launches much, so that graphs gain less of a run "
        "that nobody records."
    )


def gains(path: RankPath) -> list[Forecast]:
    """The changes that may shorten the window, first the one whose replay is shortest."""
    shorter = [
        made for made in path.what_if[1:] if made.replayed_ns < made.window_ns and made.at_most_ns
    ]
    return sorted(shorter, key=lambda made: made.replayed_ns)


def bound_text(made: Forecast) -> str:
    """`at most -40.2 %` of the time; empty without a bound."""
    if made.at_most_ns is None:
        return ""
    return f"at most {signed(-made.at_most_ns / made.window_ns)}"


def _worth(made: Forecast) -> tuple[Cell, ...]:
    now = format_ns(made.window_ns / max(made.steps, 1))
    return row_of(one_line(made.change, _NAME), now, bound_text(made))


def batch_table(batches: tuple[BatchForecast, ...]) -> Table | None:
    """Each batch size as the scan's other sizes tell it, beside what was measured; None without
    any.
    """
    if not batches:
        return None
    several = len({made.series for made in batches}) > 1
    bare = any(made.bare is not None for made in batches)
    sides = ("traced", "bare") if bare else ("traced",)
    columns = [Column("batch", "right"), Column("from")]
    for side in sides:
        columns += [
            Column(side, "right"),
            Column("interval", "right", spare=1),
            Column("measured", "right"),
            Column("error", "right"),
        ]
    return Table(
        f"A step of each batch size, {_AGAINST}",
        (*([Column("series")] if several else []), *columns),
        tuple(
            (
                *(row_of(made.series) if several else ()),
                *row_of(f"{made.size}", _from(made)),
                *_step_cells(made.traced),
                *(_step_cells(made.bare) if bare else ()),
            )
            for made in batches
        ),
        note=_SIDES if bare else "",
    )


def _from(made: BatchForecast) -> str:
    low, high = made.rests_on
    return f"{low}, {high}" if made.inside else f"{low}, {high} (beyond)"


def _step_cells(step: StepForecast | None) -> tuple[Cell, ...]:
    if step is None:
        return row_of("", "", "", "")
    return row_of(
        format_ns(step.forecast_ns),
        f"{format_ns(step.low_ns)} to {format_ns(step.high_ns)}",
        "-" if step.measured_ns is None else format_ns(step.measured_ns),
        "-" if step.error is None else signed(step.error),
    )


def signed(share: float) -> str:
    """A share with its sign, as `+12.0 %`."""
    return f"{'-' if share < 0 else '+'}{format_share(abs(share))}"
