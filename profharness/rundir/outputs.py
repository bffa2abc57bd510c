"""Places to write: whether they can be, asked before any work is done for them (a wrong path is the
user's to mend, not a fault of ours), and the temporary file that takes a place when it is whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from profharness.errors import UsageError

_MARK = "manifest.json"  # of a run directory
_DEVICES = Path("/dev")
# what a run directory holds that nothing makes again, with what keeps it (docs/run-directory.md)
_RECORDS = frozenset(
    {
        *(_MARK, "holder.json", "job.json", "calibration.json"),
        *("control", "points", "telemetry", "artifacts"),
    }
)


def require_writable(path: Path, instead: str) -> None:
    """A file can be made (or replaced) at `path`. Raises UsageError with the hint `instead`, also
    where its folder is not there.
    """
    require_plain(path, instead)
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


def require_plain(path: Path, instead: str) -> None:
    """What is at `path`, if anything, is a file that a new one may take the place of: a device or a
    pipe would be removed for it, and with it `/dev/null` for every program of the node. Raises
    UsageError.
    """
    try:
        mode = path.stat().st_mode
        is_device = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or (
            path.parent.resolve() == _DEVICES  # `/dev/stdout` leads to a file where that is one
        )
    except OSError:  # nothing is there, or told where it is written
        return
    if is_device:
        raise UsageError(
            f"{path} is no plain file: what is written would not go there, but take its place",
            instead,
        )


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


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path, for programs that want a name to write to: the file takes the place of
    `path` when the block ends well, and nothing is left otherwise.
    """
    handle, temporary = temporary_beside(path)
    os.close(handle)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:  # Ctrl-C too: no half-written file may stay
        temporary.unlink(missing_ok=True)
        raise


def refuse_inputs(target: Path, inputs: Sequence[Path]) -> None:
    """Raises UsageError where writing `target` would destroy what is read for it, overwriting
    agreed to or not: one of the inputs itself, by whatever name or link, a record of a run among
    them, or any file of another folder among them.
    """
    try:
        status = target.stat()
    except OSError:  # nothing is there, or nothing that can be overwritten
        return
    for path in inputs:
        if path.exists() and os.path.samestat(path.stat(), status):
            raise UsageError(
                f"{target} is read for this, and would be destroyed"
                + (f": it is the same file as {path}" if target != path else ""),
                "name another file with -o; --force is for results",
            )
        if not path.is_dir():
            continue
        kept = _record_in(path.resolve(), target.resolve())
        kept = kept or _record_in(path.resolve(), target.parent.resolve() / target.name)
        if kept:
            raise UsageError(
                f"{target} is part of {path}, which is read for this: {kept} would be destroyed",
                "name another file with -o; --force is for results",
            )


def _record_in(folder: Path, target: Path) -> str:
    """What of the folder the target is, that nothing makes again; empty where there is none."""
    if not target.is_relative_to(folder):
        return ""
    parts = target.relative_to(folder).parts
    if (folder / _MARK).is_file():
        return "a record of the run" if parts[:1] and parts[0] in _RECORDS else ""
    return "a file of a tool" if target.suffix not in (".pftrace", ".gz", ".html") else ""
