"""`profharness scrub`: remove secret values from trace files, in place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.rundir.shown.screen import one_line

_LEFT = "look at it yourself before you share it"


def scrub(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help=(
                "SQLite databases, Parquet, Perfetto traces, or JSON, CSV, HTML and text files, "
                "plain or gzipped; or a run: all of its files."
            ),
            metavar="FILE|RUN...",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
) -> None:
    """Remove values that look secret (tokens of clouds and hubs, HF_TOKEN=..., --password ...,
    private keys) from files, in place.

    Times, kernels and everything else stay. In a run, all files are cleaned, and links are not
    followed. The command lists what it did not search, and then ends with exit code 4, as when a
    file cannot be read or written; the other files are cleaned all the same.
    """
    from profharness.errors import InputError
    from profharness.rundir.private.spool import refuse_pipes
    from profharness.secrets import scrub as scrubbing

    if not dry_run:
        refuse_pipes(paths)
    failed: list[InputError] = []
    for named in paths:
        files, left = scrubbing.files_of(named)
        clean, removed = 0, 0
        for path in files:
            if scrubbing.went_with_another(path):
                continue
            try:
                found = (scrubbing.scan if dry_run else scrubbing.scrub)(path, left)
            except InputError as error:
                failed.append(error)
                continue
            clean, removed = clean + (not found), removed + bool(found)
            if found:
                values = f"{found.total()} value{'s' if found.total() > 1 else ''}"
                typer.echo(
                    f"{one_line(str(path))}: {'would remove' if dry_run else 'removed'} {values} "
                    f"({scrubbing.names_with_counts(found)})"
                )
        failed += (InputError(f"not looked at: {part}", _LEFT) for part in left)
        if clean and not (left and files == [named]):
            other = " other" if removed else ""
            where = f" in {clean}{other} {'file' if clean == 1 else 'files'}"
            shown = one_line(str(named))
            typer.echo(f"{shown}: nothing that looks secret{'' if files == [named] else where}")
    if failed:
        raise InputError("\n".join(error.message for error in failed), failed[0].hint)
