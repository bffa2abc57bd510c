"""Whether a place can be written, asked before any work is done for it: a wrong path is the user's
to mend, not a fault of ours.
"""

from __future__ import annotations

import os
from pathlib import Path

from profharness.errors import UsageError


def require_writable(path: Path, instead: str) -> None:
    """A file can be made (or replaced) at `path`. Raises UsageError with the hint `instead`, also
    where its folder is not there.
    """
    folder = path.parent
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", instead)
        there = folder.is_dir()
    except OSError as error:
        raise unwritable(path, error, instead) from error
    if not there:
        raise UsageError(
            f"{path} cannot be written: there is no folder {folder}", f"make it first, or {instead}"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: the folder {folder} is not writable", instead)


def can_keep(root: Path) -> bool:
    """Whether files can be put into a run: one that somebody else made, or a copy on a file system
    that is mounted read-only, is only read.
    """
    telemetry = root / "telemetry"
    return all(
        os.access(folder, os.W_OK | os.X_OK)
        for folder in (root, *((telemetry,) if telemetry.is_dir() else ()))
    )


def make_folder(path: Path, instead: str) -> None:
    """Make `path` with its parents, if need be, and see that files can be put there. Raises
    UsageError.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, instead) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: the folder is not writable", instead)


def unwritable(path: Path, error: OSError, instead: str) -> UsageError:
    """The refusal of the system in words."""
    reason = error.strerror or str(error)
    return UsageError(f"{path} cannot be written: {reason}", instead)
