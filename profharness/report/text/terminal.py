"""The summary for a terminal: the scan's table or the command's time, then Answer, Next, Trust and
findings.

`render` gives a string; with `color` false it holds no escape sequences, so that it is fit for a
file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from profharness.analysis.records import TRACED_RANKS, Hotspots, Summary
from profharness.errors import ProfharnessError
from profharness.report.axes.tables import terminal_tables
from profharness.report.table import Column, Table, first_rows, row_of
from profharness.report.tables.hotspots import time_text
from profharness.report.tables.load.ragged import ragged_table
from profharness.report.tables.load.sharing import sharing_table
from profharness.report.tables.memory.copies import copy_items
from profharness.report.tables.runtime_logs import log_lines
from profharness.report.tables.scan import VERDICT, caption, scan_table, withheld
from profharness.report.text import names
from profharness.report.text.command_sentences import first_hotspots
from profharness.report.text.figures import (
    cores_text,
    figure_text,
    finite,
    is_known,
    percent_text,
)
from profharness.report.text.findings import finding_lines
from profharness.report.text.folding import distinct_names
from profharness.report.text.labels import is_command
from profharness.report.text.limits import full_verdict, idle_items, partition_items
from profharness.report.text.listing import STYLES, fitting, listing, terminal_table
from profharness.report.text.measured import python_lines
from profharness.report.text.measured.critical_lines import path_blocks, path_lines
from profharness.report.text.measured.endings import captured, ending
from profharness.report.text.measured.host_time import kind_items
from profharness.report.text.measured.vendors import as_read
from profharness.report.text.sentences import sentences
from profharness.rundir.shown.screen import Painted, console, one_line
from profharness.units import format_number, format_share

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as Grid
    from rich.text import Text

TOP = 5
_NARROWEST = 40
_RATES = frozenset({names.STEP_RATE, names.THROUGHPUT})
_LABELS = 24
_REASONS = 3
_ROWS = 500  # points in the table: what a screen shows of more, nobody reads


def render(
    summary: Summary, width: int, color: bool, made: Sequence[Sequence[str]] = ()
) -> Painted:
    """The whole view, `width` characters wide at most (40 at least).

    `made` are the last lines: what was made and what to do with it, one row of cells each; only
    these may be wider.
    """
    summary, out = as_read(summary), io.StringIO()
    drawing = console(out, max(width, _NARROWEST), color=color)
    whole = None if is_command(summary) else scan_table(summary)
    points = None if whole is None else first_rows(whole, _ROWS)
    blocks = [
        _command(summary, width) if points is None else _scan(points, summary, width),
        _opening(summary),
        _notes(summary),
    ]
    for block in blocks:
        if block is not None:
            drawing.print(block)
            drawing.print()
    return Painted(_trimmed(out.getvalue() + "\n".join(made_lines(made, width))))


def render_error(error: ProfharnessError, color: bool, width: int = 100) -> str:
    """`error: what happened` and, indented under it, what to do."""
    from rich.text import Text

    out = io.StringIO()
    drawing = console(out, max(width, _NARROWEST), color=color)
    drawing.print(Text.assemble(("error: ", "bold red"), error.message), soft_wrap=True)
    if error.hint:
        drawing.print(Text(f"  {error.hint}"), soft_wrap=True)
    return _trimmed(out.getvalue())


def _trimmed(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""


def _scan(table: Table, summary: Summary, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    shown = fitting(table, width)
    notes = [
        _further(table.left_out),
        *withheld(summary, _REASONS),
        caption(summary),
        _left_out(table, shown),
    ]
    return Group(
        terminal_table(table, shown),
        *(Text(note, style="dim") for note in notes if note),
        *_axes(summary, width),
        *_shared(summary, width),
        *path_blocks(summary.critical_path, width),
    )


def _further(points: int) -> str:
    return f"{points} further points: profharness metrics --json lists all" if points else ""


def _left_out(table: Table, shown: Sequence[int]) -> str:
    titles = [column.title for index, column in enumerate(table.columns) if index not in shown]
    return f"not shown at this width: {', '.join(titles)}" if titles else ""


def _axes(summary: Summary, width: int) -> Iterable[RenderableType]:
    """What the axes of a scan of a command are worth, and the curves through its best point."""
    from rich.text import Text

    for table in terminal_tables(summary.axes):
        shown = fitting(table, width)
        yield ""
        yield Text(table.title, style="bold")
        yield terminal_table(table, shown)


def _shared(summary: Summary, width: int) -> Iterable[RenderableType]:
    """Models alone and together, and ways of ragged batching, where they were measured so."""
    from rich.text import Text

    for table in filter(None, (sharing_table(summary), ragged_table(summary))):
        shown = fitting(table, width)
        yield ""
        yield terminal_table(table, shown, overflow="ellipsis")
        if len(shown) < len(table.columns):
            yield Text(_left_out(table, shown), style="dim")


def _command(summary: Summary, width: int) -> RenderableType | None:
    from rich.console import Group

    head, rows = _command_head(summary), list(_command_rows(summary, width))
    parts: list[RenderableType] = [head] if head is not None else []
    if rows:
        parts.append(_grid(rows))
    return Group(*parts) if parts else None


def _command_head(summary: Summary) -> Text | None:
    """`profharness: 20 steps captured (10 to 29), 41.2 s, 412.0 ms per step; python exited 0`. Of
    several ranks it names those that were traced, unless all were.
    """
    from rich.text import Text

    run = summary.run
    if run is None or not is_command(summary):
        return None
    seconds = [row.seconds for row in summary.passes if row.seconds is not None]
    step = summary.metrics.get(names.STEP_TIME)
    traced = run.asked.get(TRACED_RANKS, "")
    parts = [
        f"of {run.asked['ranks']} ranks only {traced} traced" if traced else "",
        captured(summary),
        f"{sum(seconds):.1f} s" if seconds else "",
        f"{figure_text(step, interval=False)} per step"
        if step is not None and step.value is not None
        else "",
    ]
    status = "" if run.exit_status is None else f"; {ending(run, summary.findings)}"
    return Text(
        f"profharness: {', '.join(part for part in parts if part) or 'recorded'}{status}",
        style="" if not run.exit_status else STYLES["error"],
    )


def _command_rows(summary: Summary, width: int) -> Iterable[tuple[str, str]]:
    if summary.partition is not None and summary.partition.window_ns > 0:
        yield from labelled(
            "where the time went",
            wrapped_items(partition_items(summary.partition), width - _LABELS),
        )
        yield from labelled(
            "why idle", wrapped_items(idle_items(summary.partition), width - _LABELS)
        )
    if summary.host is not None:
        of_window = summary.host.of == "window"
        label = "where the time went" if of_window else "the host meanwhile"
        yield from labelled(label, wrapped_items(kind_items(summary.host), width - _LABELS))
    yield from labelled("copies", copy_items(summary.copies_by))
    yield from _measured_rows(summary, width)
    for label, held in path_lines(
        summary.critical_path,
        width - _LABELS,
        overhead_known=any(row.overhead for row in summary.passes),
    ):
        yield from labelled(label, held)
    verdict = full_verdict(summary.verdict, summary.verdict_needs)
    if verdict:
        yield VERDICT, verdict
    for row in summary.passes:
        for layer, overhead in row.overhead.items():
            yield f"overhead {layer}", percent_text(overhead)
    yield from _other_metrics(summary)


def _measured_rows(summary: Summary, width: int) -> Iterable[tuple[str, str]]:
    """Rows of hotspots, of a runtime's log, and of lines of Python."""
    table = first_hotspots(summary)
    if table is not None:
        label = {"kernel": "top kernels", "op": "top operations", "category": "by category"}[
            table.by
        ]
        yield from labelled(label, hotspot_lines(table, width - _LABELS))
    if summary.log is not None:
        for label, lines in log_lines(summary.log, width - _LABELS):
            yield from labelled(label, lines)
    for label, lines in python_lines.summary_lines(summary.host_lines, width - _LABELS):
        yield from labelled(label, lines)


def _other_metrics(summary: Summary) -> Iterable[tuple[str, str]]:
    """Figures of the whole window that no line above has said: a few, measured ones only."""
    for name in (
        names.STEP_RATE,
        names.THROUGHPUT,
        names.GPU_PERCENT,
        names.FILL,
        names.POWER_SATURATION,
        names.CORES_USED,
    ):
        figure = summary.metrics.get(name)
        if figure is not None and is_known(figure):
            value = finite(figure.value)
            text = figure_text(figure).removesuffix(" %" if name == names.GPU_PERCENT else "")
            if name == names.CORES_USED and value is not None and figure.low is None:
                text = cores_text(value)
            yield (
                names.title_of(name),
                f"{text}, {figure.note}" if figure.note and name in _RATES else text,
            )


def labelled(label: str, lines: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Rows of a grid whose first line carries the label."""
    return ((label if index == 0 else "", line) for index, line in enumerate(lines))


def wrapped_items(items: Sequence[str], width: int) -> list[str]:
    """The items in lines of at most `width` characters, three blanks apart; no item is broken."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 3 + len(item) <= width:
            lines[-1] += f"   {item}"
        else:
            lines.append(item)
    return lines


def hotspot_lines(table: Hotspots, width: int, top: int = TOP) -> list[str]:
    """The first rows as lines: name, share, calls x mean, fill of the most common shape where
    known.
    """
    rows = table.rows[:top]
    room = max(min(width - 34, 48), 16)
    shown = distinct_names([row.name for row in rows], room)
    columns = (
        Column("name"),
        Column("share", "right", width=7, gap="   "),
        Column("calls", gap="   "),
    )
    lines = listing(
        Table(
            "hotspots",
            columns,
            tuple(
                row_of(
                    name,
                    "-" if row.share is None else format_share(row.share),
                    f"{format_number(row.calls)} x {time_text(row.mean_ns)}",
                )
                for name, row in zip(shown, rows, strict=True)
            ),
        )
    )
    rest = len(table.rows) - len(rows)
    return [*lines, f"and {rest} more"] if rest > 0 else list(lines)


def _opening(summary: Summary) -> Grid:
    words = sentences(summary)
    return _grid(
        [("Answer", words.answer), ("Next", words.next), ("Trust", words.trust)],
        indent=0,
        style="bold",
    )


def _notes(summary: Summary) -> Grid | None:
    """Errors and warnings by word and colour, three at most; then what the readers dropped or
    repaired.
    """
    rows: list[tuple[str, str]] = list(finding_lines(summary))
    serious = [row for row in summary.problems if row.severity != "info"]
    rows.extend(
        (
            row.severity,
            one_line(
                f"{row.source}: {row.message} "
                f"({'once' if row.count == 1 else f'{format_number(row.count)} times'})"
            ),
        )
        for row in serious[:3]
    )
    rest = len(serious) - 3
    if rest > 0:
        rows.append(("", f"and {rest} more problems"))
    return _severity_grid(rows) if any(severity for severity, _ in rows) else None


def _severity_grid(rows: Sequence[tuple[str, str]]) -> Grid:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for severity, line in rows:
        grid.add_row(Text(severity, style=STYLES[severity]), Text(line))
    return grid


def _grid(rows: Iterable[tuple[str, str]], indent: int = 2, style: str = "") -> Grid:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 3, 0, 0) if indent else (0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(Text(f"{' ' * indent}{label}", style=style), Text(text))
    return grid


def made_lines(made: Sequence[Sequence[str]], width: int) -> list[str]:
    """What was made, in columns where these fit; else each cell on a line of its own. None is
    broken: people copy them.
    """
    count = max(map(len, made), default=0)
    rows = tuple(row_of(*row, *[""] * (count - len(row))) for row in made)
    lines = list(listing(Table("made", (Column(gap="    "),) * count, rows)))
    if all(len(line) <= width for line in lines):
        return lines
    return [
        one_line(cell) if index == 0 else f"  {one_line(cell)}"
        for row in made
        for index, cell in enumerate(row)
        if cell
    ]
