"""`profharness ls`: the runs below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import InputError
from profharness.rundir.harness_process import state_of
from profharness.rundir.paths import MANIFEST, RunDir


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
        typer.echo(f"no runs below {base}; make one with `profharness run particlenet`", err=True)
        return
    for root in found:
        try:
            manifest = RunDir(root).read_manifest()
        except InputError as error:
            typer.echo(f"{'damaged':<12} {root}   {error.message}")
            continue
        layers = ",".join(layer.name for layer in manifest.layers) or "bare"
        points = len(
            {point.id for point in manifest.points}
        )  # one that several passes or repeats measured counts once
        split = [
            f"{record.name} as {'+'.join(record.split)}"
            for record in manifest.passes
            if record.split
        ]
        told = f"   split: {', '.join(split)}" if split else ""
        typer.echo(
            f"{state_of(manifest):<12} {manifest.created}  {points:>3} "
            f"point{'s' if points != 1 else ' '}  {layers:<20} {root}{told}"
        )
