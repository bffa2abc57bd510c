"""Files that come through a pipe: `-` for standard input, `<(command)`, a FIFO. Readers look at a
file more than once, so what comes is put into a private file first, which messages call by the name
that the user gave.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from profharness.errors import InputError, UsageError

STDIN = "-"
LARGEST_BYTES = 32 << 30
_BLOCK = 1 << 20
_LEFT_FREE = 64 << 20
_NO_FILES = (
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


class SpooledPath(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A path that reads as the user gave it, and whose file is `kept`. Paths that are made of it,
    such as those of its neighbours, lie where the given one would.
    """

    kept: str = ""

    def __fspath__(self) -> str:
        return self.kept or str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (str(self), self.kept)


def _named(given: str, kept: str) -> SpooledPath:
    path = SpooledPath(given)
    path.kept = kept
    return path


def check_is_file(path: Path, mode: int) -> None:
    """Raises InputError for what is neither a file nor a folder nor a pipe: a device never ends,
    or answers differently each time.
    """
    for test, what in _NO_FILES:
        if test(mode):
            raise InputError(f"{path} is {what}, not a file", "name a file, or pipe one in with -")


def _path_of_stdin() -> str:
    """Where the file or folder lies that standard input is; empty for a pipe, and for a file that
    has no name (as a shell makes for a long here-document) or that may not be opened by its name.
    """
    path = Path("/proc/self/fd/0").resolve()
    try:
        is_there = os.path.samestat(path.stat(), os.fstat(0)) and os.access(path, os.R_OK)
    except OSError:
        is_there = False
    return str(path) if is_there else ""


def refuse_pipes(paths: Iterable[Path]) -> None:
    """Raises UsageError where one came through a pipe: there is nothing to write back to."""
    for path in paths:
        if isinstance(path, SpooledPath):
            raise UsageError(
                f"what comes through {path} cannot be changed in place",
                "name the file itself, or only look with --dry-run",
            )


class Spool:
    """The pipes of one command line, each read once; their files go when `stack` is closed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folder: Path | None = None
        self._done: dict[str, Path] = {}

    def file(self, path: Path) -> Path:
        """The path itself where it names a file or a folder, or nothing; else what comes through
        it. Raises InputError for a device or socket, and where there is no room.
        """
        given = str(path)
        if given in self._done:
            return self._done[given]
        try:
            mode = os.fstat(0).st_mode if given == STDIN else path.stat().st_mode
        except OSError:  # told where it is read
            return path
        check_is_file(Path("standard input") if given == STDIN else path, mode)
        if given == STDIN:
            self._done[given] = _named(given, _path_of_stdin() or self._keep(given))
        elif stat.S_ISFIFO(mode):
            self._done[given] = _named(given, self._keep(given))
        return self._done.get(given, path)

    def _keep(self, given: str) -> str:
        from profharness.rundir.private.folders import free_bytes, private_folder

        try:
            if self._folder is None:
                self._folder = self._stack.enter_context(private_folder())
            kept = self._folder / str(len(self._done))
            source = os.dup(0) if given == STDIN else os.open(given, os.O_RDONLY | os.O_CLOEXEC)
            with os.fdopen(source, "rb", buffering=0) as pipe, kept.open("wb") as out:
                size = 0
                while block := pipe.read(_BLOCK):
                    size += len(block)
                    if size > LARGEST_BYTES:
                        raise InputError(
                            f"more than {LARGEST_BYTES >> 30} GiB come through {given}",
                            "write them to a file, and name that",
                        )
                    if free_bytes(self._folder) < _LEFT_FREE:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    out.write(block)
        except OSError as error:
            raise InputError(
                f"what comes through {given} could not be kept: {error.strerror or error}",
                "free some space, choose another folder with TMPDIR, or name a file",
            ) from error
        return str(kept)
