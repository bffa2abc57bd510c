"""What a writer that was ended (or still works) left beside a database, and what that means.

A rollback journal holds the old pages of a write that was not finished: without it a reader takes
the half that was written for the whole. A write-ahead log holds finished writes that are not in the
database yet. SQLite's own rules for both: https://www.sqlite.org/lockingv3.html#hot_journals and
https://www.sqlite.org/wal.html.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.databases import header

# bytes that SQLite locks, in a page that is never written
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510
_FLOCK = "hhqqi0q"  # struct flock of fcntl(2)
State = tuple[tuple[int, int, int] | None, ...]
AGAIN = "record it again, or copy the database together with what lies beside it"


@dataclass(frozen=True)
class Neighbours:
    """The files beside a database that belong to its content; None for one that does not."""

    journal: Path | None = None
    journal_bytes: int = 0
    """Of the journal, without the name of a super-journal at its end."""

    log: Path | None = None

    def __bool__(self) -> bool:
        return self.journal is not None or self.log is not None


def neighbours(path: Path) -> Neighbours:
    """What lies beside a database (whose links are resolved) and has to be read with it.

    Raises InputError where it cannot be read, and where it cannot be known whether the last write
    was finished.
    """
    log = path.with_name(f"{path.name}-wal")
    log_bytes = _size(log)
    journal = path.with_name(f"{path.name}-journal")
    journal_bytes = _size(journal)
    if journal_bytes:
        journal_bytes = _hot_bytes(path, journal)
    return Neighbours(
        journal if journal_bytes else None,
        journal_bytes,
        log if log_bytes > header.LOG_HEADER_BYTES else None,
    )


def open_regular(path: Path) -> int:
    """A descriptor of a plain file. Raises OSError, also where it is a link or no plain file: what
    lies beside a foreign file may be anything.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no plain file")
    return handle


def writer_of(path: Path) -> int:
    """The process that holds the database locked for writing; 0 where there is none, or where the
    file system cannot tell.
    """
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)
    try:
        with path.open("rb") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    except OSError:
        return 0
    kind, _, _, _, pid = struct.unpack(_FLOCK, answer)
    return int(pid) if kind == fcntl.F_WRLCK else 0


def state(path: Path) -> State:
    """What changes when somebody writes the database or beside it: number, size and time of each
    file.
    """
    return tuple(
        _stamp(path.with_name(f"{path.name}{suffix}")) for suffix in ("", "-journal", "-wal")
    )


def _size(path: Path) -> int:
    """The size of a neighbour; 0 where there is none. Raises InputError for what is no plain file:
    SQLite would follow it anywhere.
    """
    try:
        status = path.lstat()
    except OSError:
        return 0
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path} lies beside a database and is no plain file",
            "move it away if it does not belong there",
        )
    return status.st_size


def _hot_bytes(path: Path, journal: Path) -> int:
    """How much of the journal has to be undone; 0 where its write was finished."""
    try:
        with os.fdopen(open_regular(journal), "rb") as file:
            if not file.read(1).strip(b"\0"):  # set to zero by a finished write
                return 0
            named, size = header.super_journal(file)
    except OSError as error:
        raise InputError(
            f"{path} has an unfinished write, and its journal {journal.name} cannot be read: "
            f"{error.strerror or error}",
            "check the permissions of both",
        ) from error
    if not named or Path(named).exists():
        return size
    if Path(named).parent.resolve() == path.parent:
        return 0  # the write of several databases was finished: SQLite removed it
    raise InputError(
        f"{path} has an unfinished write together with other databases, and what says whether that "
        f"was finished ({named}) does not lie beside it",
        AGAIN,
    )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return (status.st_ino, -1, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
