"""`profharness scrub`: remove secret values from trace files, in place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def scrub(
    paths: Annotated[list[Path], typer.Argument(help="rocprofv3 databases (*.db), or JSON, CSV and text files, plain or gzipped.", metavar="FILE...")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove the values of variables that look secret (HF_TOKEN, --password=...) from files, in place.

    Times, kernels and all else stay. Exit code 4 when a file cannot be read or written; the others are cleaned all the same.
    """
    from profharness import scrubbing
    from profharness.errors import InputError

    failed: list[InputError] = []
    for path in paths:
        try:
            found = scrubbing.scan(path) if dry_run else scrubbing.scrub(path)
        except InputError as error:
            failed.append(error)
            continue
        done = "would remove" if dry_run else "removed"
        values = f"{found.total()} value{'s' if found.total() > 1 else ''}"
        typer.echo(f"{path}: {done} {values} ({scrubbing.told(found)})" if found else f"{path}: nothing that looks secret")
    if failed:
        raise InputError("\n".join(error.message for error in failed), failed[0].hint)
