"""`profharness ls`: the runs below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import InputError
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.listing import listing
from profharness.rundir.harness_process import state_of
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.rundir.shown.screen import mention


def ls(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to look (default: traces, or $PROFHARNESS_OUTPUT).")
    ] = None,
) -> None:
    """List runs, oldest first: state, points, layers, path. `killed` is a run whose harness ended
    without a word.
    """
    base = folder or Path(os.environ.get("PROFHARNESS_OUTPUT", "traces"))
    found = sorted(path.parent for path in base.glob(f"*/{MANIFEST}")) if base.is_dir() else []
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


def _row(root: Path) -> tuple[Cell, ...]:
    try:
        manifest = RunDir(root).read_manifest()
    except InputError as error:
        return row_of("damaged", f"{root}   {error.message}", "", "", "", "")
    layers = ",".join(layer.name for layer in manifest.layers) or "bare"
    # a point that several passes or repeats measured counts once
    points = len({point.id for point in manifest.points})
    split = [
        f"{record.name} as {'+'.join(record.split)}" for record in manifest.passes if record.split
    ]
    return row_of(
        state_of(manifest),
        manifest.created,
        f"{points:>3} point{'s' if points != 1 else ' '}",
        layers,
        str(root),
        f"split: {', '.join(split)}" if split else "",
    )
