"""The critical path in the terminal's report: a few lines of a command, and the batch sizes of a
scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from profharness.analysis.critical.classes import LABELS
from profharness.analysis.critical.records import CriticalPath, PathRow
from profharness.report.tables.critical import (
    batch_table,
    bound_text,
    gains,
    holding_path,
    longest_path,
    path_name,
    slowed_by_recording,
)
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.listing import fitting, terminal_table
from profharness.rundir.shown.screen import one_line
from profharness.units import format_ns, format_share

if TYPE_CHECKING:
    from rich.console import RenderableType

_CLASSES = 5
_ROWS = 3
_WORTH = 3
_SEEN = 0.005


def path_lines(
    path: CriticalPath | None, width: int, *, overhead_known: bool = False
) -> Iterator[tuple[str, Sequence[str]]]:
    """Labels with lines: the largest classes and rows of the longest path, and the changes of it
    that are worth most, with what recording does to them where its overhead is not known. Nothing
    without a path.
    """
    if path is None or not path.window_ns:
        return
    longest = longest_path(path)
    shares = [
        f"{LABELS[key]} {format_share(part.ns / longest.window_ns)}"
        for key, part in longest.segments.items()
        if part.ns >= _SEEN * longest.window_ns
    ]
    on = "".join(
        f" ({one_line(place, 40)} holds {format_share(ns / longest.window_ns)})"
        for place, ns in list(longest.places.items())[:1]
    )
    of = f"{one_line(path_name(longest), 40)}{on}: " if len(path.processes) > 1 else ""
    yield "critical path", [f"{of}{', '.join(shares[:_CLASSES])}"]
    rows = [row for row in longest.rows if row.name and row.share >= _SEEN][:_ROWS]
    yield "most of it", [_row(row, width) for row in rows]
    slowed = "" if overhead_known else slowed_by_recording(gains(holding_path(path))[:_WORTH])
    yield "worth most", [*_worth(path), *([slowed] if slowed else [])]


def _row(row: PathRow, width: int) -> str:
    room = max(min(width - 34, 60), 16)
    on = f" on {one_line(row.process, 40)}" if row.process else ""
    return f"{fold_kernel_name(row.name, room)}{on}  {format_share(row.share)}"


def _worth(path: CriticalPath) -> Iterator[str]:
    holding = holding_path(path)
    gaining = gains(holding)[:_WORTH]
    on = f" on {one_line(holding.process, 40)}" if holding is not longest_path(path) else ""
    for made in gaining:
        now = format_ns(made.window_ns / max(made.steps, 1))
        yield one_line(f"{made.change}{on}: {now}, {bound_text(made)}")
    if gaining:
        check = holding.what_if[0]
        yield (
            f"replayed without a change: {format_ns(check.replayed_ns)}, "
            f"{format_ns(abs(check.residual_ns))} off what was measured"
        )


def path_blocks(path: CriticalPath | None, width: int) -> Iterable[RenderableType]:
    """Batch sizes of a scan, each as the others tell it, and what changes are worth at the point
    that takes longest.
    """
    from rich.text import Text

    if path is None:
        return
    table = batch_table(path.batches)
    if table is not None:
        yield ""
        yield Text(table.title, style="bold")
        yield terminal_table(table, fitting(table, width), overflow="ellipsis")
        if table.note:
            yield Text(table.note, style="dim")
    worth = list(_worth(path))
    if worth:
        yield ""
        yield Text(f"Worth most at {one_line(path_name(longest_path(path)), 40)}", style="bold")
        yield from (Text(f"  {line}") for line in worth)
