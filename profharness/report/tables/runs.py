"""The list of runs as a table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from profharness.report.table import Cell, Column, Table, row_of
from profharness.rundir.foreign.listed_rows import DAMAGED, RunRow

_DATE = 40  # characters: a time in UTC has 20
_WHAT = 60
_COLUMNS = (
    Column("state", width=12),
    Column("started", width=20, gap=" "),
    Column("points", "right", width=10),
    Column("layers", width=16),
    Column("run"),
    Column("what"),
    Column("split passes", gap="   "),
)


def runs_table(runs: Sequence[RunRow], describe_exit: Callable[[int], str]) -> Table:
    """A row for each run; `describe_exit` says how a command ended (`exited 3`)."""
    return Table("Runs", _COLUMNS, tuple(_row(run, describe_exit) for run in runs))


def _row(run: RunRow, describe_exit: Callable[[int], str]) -> tuple[Cell, ...]:
    if run.state == DAMAGED:
        return row_of(DAMAGED, "", "", "", run.path, run.error, "")
    split = [f"{name} as {'+'.join(parts)}" for name, parts in run.split_passes.items()]
    return row_of(
        _state(run, describe_exit),
        _short(run.started, _DATE),
        _points(run),
        _short(",".join(run.layers) or "bare"),
        run.path,
        _short(run.scan or shlex.join(run.command or ()), _WHAT),
        f"split: {_short(', '.join(split))}" if split else "",
    )


def _state(run: RunRow, describe_exit: Callable[[int], str]) -> str:
    """What became of the run; of one that is done and whose command failed, how that ended."""
    if run.state == "done" and run.exit_status:
        return describe_exit(run.exit_status).removeprefix("was ")
    return run.state


def _points(run: RunRow) -> str:
    """How many points were measured; a command without any has no such number."""
    if run.kind == "command" and not run.points:
        return ""
    return f"{run.points} {'point' if run.points == 1 else 'points'}"


def _short(text: str, most: int = 200) -> str:
    """A text of a manifest, no longer than a line should be."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
