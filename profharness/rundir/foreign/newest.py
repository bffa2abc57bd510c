"""The runs that were made last, as `profharness ls` lists them."""

from __future__ import annotations

import os
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.foreign.listing import read_listed, runs_below


def output_folder() -> Path:
    """Where runs are made unless a line says otherwise: $PROFHARNESS_OUTPUT, or traces."""
    return Path(os.environ.get("PROFHARNESS_OUTPUT", "traces"))


def newest_runs(base: Path) -> tuple[Path, ...]:
    """The runs below a folder, the newest first; damaged ones do not count. Raises InputError for a
    folder that cannot be read.
    """
    try:
        roots = runs_below(base) if base.is_dir() else []
    except OSError as error:
        raise InputError(
            f"{base} cannot be read: {error.strerror or error}", "check its permissions"
        ) from error
    made = []
    for root in roots:
        try:
            made.append((read_listed(root).created, str(root), root))
        except InputError:
            continue
    return tuple(root for _, _, root in sorted(made, reverse=True))
