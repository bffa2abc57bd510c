"""Places to write: whether they can be, asked before any work is done for them (a wrong path is the
user's to mend, not a fault of ours), and the temporary file that takes a place when it is whole.
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


def make_folder(path: Path, instead: str) -> None:
    """Make `path` with its parents, if need be, and see that files can be put there. Raises
    UsageError.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, instead) from error
    require_folder(path, instead)


def require_folder(path: Path, instead: str) -> None:
    """Files can be put into the folder `path`. Raises UsageError."""
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: the folder is not writable", instead)


def unwritable(path: Path, error: OSError, instead: str) -> UsageError:
    """The refusal of the system in words."""
    reason = error.strerror or str(error)
    return UsageError(f"{path} cannot be written: {reason}", instead)


def temporary_beside(path: Path, mode: int = 0o666) -> tuple[int, Path]:
    """A new file beside `path`, opened for writing, whose name begins with a dot.

    The system takes the umask off `mode` as it makes the file. Asking for the umask, which is only
    possible by setting it, would give another mode to what other threads make at that moment.
    """
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(temporary, flags, mode), temporary
        except FileExistsError:
            continue  # by chance another has this name
