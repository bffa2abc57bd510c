"""`profharness merge`: runs or loose trace files into one Perfetto trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    paths: Annotated[list[Path], typer.Argument(help="Run directories or trace files.", metavar="RUN|FILE...")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; .gz compresses. A single run: its own merged.pftrace.")] = None,
    overlay: Annotated[bool, typer.Option("--overlay", help="Shift each pass, point by point, onto the bare pass.")] = False,
    allow_unaligned: Annotated[bool, typer.Option("--allow-unaligned", help="Merge sources that cannot be put on one clock, marked.")] = False,
    gpu_repr: Annotated[str, typer.Option(help="render-stage, or track-event for viewers older than Perfetto v55.")] = "render-stage",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Merge runs or trace files into one Perfetto trace on one clock."""
    from profharness.merging import MergeOptions, merge_to_file

    report = merge_to_file(paths, output, MergeOptions(
        overlay=overlay, allow_unaligned=allow_unaligned, gpu_repr=gpu_repr, force=force))
    for line in report.lines:
        typer.echo(line, err=True)
    typer.echo(str(report.path))
