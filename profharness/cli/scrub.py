"""`profharness scrub`: remove secret values from trace files, in place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def scrub(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help=(
                "rocprofv3 databases (*.db), Perfetto traces, or JSON, CSV and text files, "
                "plain or gzipped; or a run, for all that its tools left."
            ),
            metavar="FILE|RUN...",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
) -> None:
    """Remove the values of variables that look secret (HF_TOKEN, --password=...) from files, in
    place.

    Times, kernels and all else stay; of a run the tools' files and the program's output are
    cleaned. Exit code 4 when a file cannot be read or written; the others are cleaned all the same.
    """
    from profharness.errors import InputError
    from profharness.rundir.private.spool import refuse_pipes
    from profharness.secrets import scrub as scrubbing

    if not dry_run:
        refuse_pipes(paths)
    failed: list[InputError] = []
    for named in paths:
        files = scrubbing.files_of(named)
        clean = 0
        for path in files:
            try:
                found = scrubbing.scan(path) if dry_run else scrubbing.scrub(path)
            except InputError as error:
                failed.append(error)
                continue
            clean += not found
            if found:
                values = f"{found.total()} value{'s' if found.total() > 1 else ''}"
                typer.echo(
                    f"{path}: {'would remove' if dry_run else 'removed'} {values} "
                    f"({scrubbing.names_with_counts(found)})"
                )
        if clean:
            typer.echo(
                f"{named}: nothing that looks secret"
                + ("" if files == [named] else f" in {clean} {'file' if clean == 1 else 'files'}")
            )
    if failed:
        raise InputError("\n".join(error.message for error in failed), failed[0].hint)
