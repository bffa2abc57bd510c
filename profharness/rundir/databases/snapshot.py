"""A private copy of a database with what its writer left beside it, which SQLite then recovers. The
user's own files are only read.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.databases import guard, header
from profharness.rundir.databases.unfinished import (
    AGAIN,
    Neighbours,
    neighbours,
    open_regular,
    state,
)
from profharness.rundir.private.folders import free_bytes, private_folder

_TRIES = 40
_QUIET_S = 0.05  # file systems stamp changes to a few milliseconds
_CHUNK = 4 << 20


@contextmanager
def recovered(path: Path) -> Iterator[Path]:
    """The copy, recovered, with nothing beside it that would have to be read. Raises InputError
    where no copy can be made, and where SQLite cannot recover it.
    """
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(private_folder()) / "copy.db"
            if beside := _copy(path, copy):
                _recover(path, copy, beside)
        except OSError as error:
            raise InputError(
                f"{path} has an unfinished write, and no copy of it could be made to undo it: "
                f"{error.strerror or error}",
                "free some space, or choose another folder with TMPDIR",
            ) from error
        yield copy


def _copy(path: Path, copy: Path) -> Neighbours:
    """Copy all of one moment: nothing may change meanwhile, and what changed an instant ago may
    still be changing.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_QUIET_S)
        before = state(path)
        stamps = [stamp[2] for stamp in before if stamp]
        if stamps and abs(time.time_ns() - max(stamps)) < _QUIET_S * 1e9:
            continue
        beside = neighbours(path)
        _check_room(path, beside, copy.parent)
        _copy_bytes(path, copy)
        if beside.journal:
            _copy_bytes(beside.journal, copy.with_name("copy.db-journal"), beside.journal_bytes)
        if beside.log:
            _copy_bytes(beside.log, copy.with_name("copy.db-wal"))
        if state(path) == before:
            return beside
    raise InputError(
        f"{path} is being written by a program that still runs",
        "wait until it has ended, or end it",
    )


def _recover(path: Path, copy: Path, beside: Neighbours) -> None:
    """Let SQLite undo the unfinished write, or take up the log, and look whether the result is
    whole: a journal or log of another database would leave a mixture of both.
    """
    before = _header(copy)
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            guard.limit(connection, copy.stat().st_size, guard.RECOVERING)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("SELECT count(*) FROM sqlite_master")
            connection.execute("COMMIT")
            undone = _header(copy)
            connection.execute("PRAGMA journal_mode = DELETE")  # takes up a log, too
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except guard.DAMAGED as error:
        raise _not_recovered(path, beside, str(error)) from error
    if said != "ok":
        raise _not_recovered(path, beside, said)
    if beside.journal and undone.counter not in (before.counter, before.counter - 1):
        raise _not_recovered(path, beside, "they are of different writes")


def _not_recovered(path: Path, beside: Neighbours, why: str) -> InputError:
    names = " and ".join(one.name for one in (beside.journal, beside.log) if one)
    return InputError(
        f"{path} has an unfinished write, and {names} beside it does not belong to it or is "
        f"damaged ({' '.join(why.split())[:200]})",
        AGAIN,
    )


def _header(copy: Path) -> header.Header:
    with copy.open("rb") as file:
        return header.header_of(file.read(header.HEADER_BYTES))


def _check_room(path: Path, beside: Neighbours, folder: Path) -> None:
    needed = sum(one.stat().st_size for one in (path, beside.journal, beside.log) if one)
    if needed > free_bytes(folder):
        raise InputError(
            f"{path} has an unfinished write, and {folder.parent} has no room for the copy of "
            f"{needed >> 20} MiB that is needed to undo it",
            "free some space, or choose another folder with TMPDIR",
        )


def _copy_bytes(source: Path, target: Path, most: int | None = None) -> None:
    """At most the bytes that the file has now: a writer may add to it for ever."""
    with os.fdopen(open_regular(source), "rb") as file, target.open("wb") as out:
        left = os.fstat(file.fileno()).st_size if most is None else most
        while left and (block := file.read(min(left, _CHUNK))):
            out.write(block)
            left -= len(block)
