"""`profharness ls`: the runs below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import InputError
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.listing import listing
from profharness.rundir.foreign.listing import read_listed, runs_below
from profharness.rundir.harness_process import state_of
from profharness.rundir.shown.screen import mention

_DATE = 40  # characters: a time in UTC has 20


def ls(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to look (default: traces, or $PROFHARNESS_OUTPUT).")
    ] = None,
) -> None:
    """List runs, oldest first: state, points, layers, path. `killed` is a run whose harness ended
    without a word.
    """
    base = folder or Path(os.environ.get("PROFHARNESS_OUTPUT", "traces"))
    found = _found(base)
    if not found:
        mention(f"no runs below {base}; make one with `profharness run particlenet`")
        return
    columns = (
        Column("state", width=12),
        Column("created", width=0, gap=" "),
        Column("points", width=0),
        Column("layers", width=20),
        Column("run", width=0, gap=" "),
        Column("split passes", gap="   "),
    )
    for line in listing(Table("runs", columns, tuple(_row(root) for root in found))):
        typer.echo(line)


def _found(base: Path) -> list[Path]:
    """The runs below a folder. Raises InputError where it cannot be looked into."""
    try:
        return runs_below(base) if base.is_dir() else []
    except OSError as error:
        raise InputError(
            f"{base} cannot be read: {error.strerror or error}", "check its permissions"
        ) from error


def _row(root: Path) -> tuple[Cell, ...]:
    try:
        run = read_listed(root)
    except InputError as error:
        return row_of("damaged", f"{root}   {error.message}", "", "", "", "")
    layers = ",".join(layer.name for layer in run.layers) or "bare"
    # a point that several passes or repeats measured counts once
    points = len({point.id for point in run.points})
    split = [f"{record.name} as {'+'.join(record.split)}" for record in run.passes if record.split]
    return row_of(
        state_of(run),
        _short(run.created, _DATE),
        f"{points:>3} point{'s' if points != 1 else ' '}",
        _short(layers),
        str(root),
        f"split: {_short(', '.join(split))}" if split else "",
    )


def _short(text: str, most: int = 200) -> str:
    """A text of a manifest, no longer than a line should be."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
