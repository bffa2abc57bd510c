"""Options of the commands that take many files: where the work is done."""

from __future__ import annotations

from typing import Annotated

import typer

Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        help="Processes that read files at once (default: one per CPU where it is worth it).",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|FILE|slurm",
        help=(
            "Work on a Dask cluster: its scheduler's address or file, "
            "or jobs started through dask-jobqueue."
        ),
    ),
]
DaskWorkers = Annotated[
    int, typer.Option("--dask-workers", min=0, help="Jobs to start with --dask slurm.")
]
