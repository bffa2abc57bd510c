"""A database opened for reading: guarded, whole or recovered from what its writer left, plain or
gzipped. Nothing is written beside the file.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.blocks import GZIP, Blocks
from profharness.rundir.databases import guard, header, unfinished

LARGEST_BYTES = 32 << 30
_MOST_ENTRIES = 20_000  # each process of a merged rocpd brings about 30
_RECOVERED = (
    "its writer was ended before it was done: the file was read as SQLite recovers it, without the "
    "write that was not finished"
)
_LOG_ABSENT = (
    "the database is written with a log beside it ({}), which is not there: that is so after a "
    "proper end, and where the file was copied without its log, whose records then are missing"
)


@dataclass(frozen=True)
class Opened:
    """A database that may be read. `damage` says in words why a gzipped file ended early, or which
    of its pages do not fit together; `recovered` that its writer was ended and what that means;
    `doubt` what may be missing.
    """

    connection: sqlite3.Connection
    damage: str = ""
    recovered: str = ""
    doubt: str = ""


@contextmanager
def opened(
    path: Path,
    largest_bytes: int = LARGEST_BYTES,
    allowance: guard.Allowance = guard.READING,
) -> Iterator[Opened]:
    """The database. What its statements raise is one of `guard.DAMAGED`.

    Raises InputError when it cannot be read; when a write to it was not finished and cannot be
    undone; when a gzipped one holds more than `largest_bytes`; and at the end, when it asked for
    more than its size allows, or somebody wrote to it meanwhile.
    """
    with _file(path, largest_bytes) as (plain, damage, recovered, doubt):
        try:
            tables = _checked_schema(path, plain)
            with closing(_connected(path, plain)) as connection:
                bounds = guard.limit(connection, _used_bytes(plain), allowance, tables)
                permissions = guard.Permissions()
                try:
                    permissions.restrict(connection)
                    asked = allowance.consistent and not damage
                    wrong = permissions.inconsistency(connection) if asked else damage
                    connection.text_factory = guard.Texts().__getitem__
                    yield Opened(connection, wrong, recovered, doubt)
                except (*guard.DAMAGED, InputError):
                    _check_asked(path, bounds, permissions)
                    raise
                _check_asked(path, bounds, permissions)
        except MemoryError as error:
            raise InputError(
                f"{path} is not read: it needs more memory than a trace of its size can need",
                "look at where the file comes from",
            ) from error
        except guard.DAMAGED as error:
            raise InputError(
                f"{path} is damaged, no readable database: {error}",
                "the tool was interrupted, or the file was damaged on its way: copy or record it "
                "again",
            ) from error


@contextmanager
def _file(path: Path, largest_bytes: int) -> Iterator[tuple[Path, str, str, str]]:
    """A plain file with all that belongs to it; what is wrong with it, that it was recovered, and
    what may be missing.
    """
    if _is_gzipped(path):
        with _inflated(path, largest_bytes) as (plain, damage):
            if not damage:
                _check_finished(path, plain)
            yield plain, damage, "", _doubt(path, plain)
        return
    resolved = path.resolve()
    before = unfinished.state(resolved)
    if unfinished.neighbours(resolved):
        from profharness.rundir.databases import snapshot

        with snapshot.recovered(resolved) as copy:
            yield copy, "", _RECOVERED, ""
        return
    if writer := unfinished.writer_of(path):
        raise InputError(
            f"{path} is being written by process {writer}", "wait until it has ended, or end it"
        )
    _check_finished(path, path)
    try:
        yield path, "", "", _doubt(path, path)
    except (*guard.DAMAGED, InputError):
        _check_unchanged(path, before)
        raise
    _check_unchanged(path, before)


def _check_unchanged(path: Path, before: unfinished.State) -> None:
    if unfinished.state(path.resolve()) != before:
        raise InputError(f"{path} was changed while it was read", "wait until its writer has ended")


def _connected(path: Path, plain: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(
            f"{plain.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None
        )
    except sqlite3.Error as error:
        raise InputError(
            f"{path} cannot be opened: {error}", "check that it is a whole SQLite file"
        ) from error


def _check_asked(path: Path, bounds: guard.Bounds, permissions: guard.Permissions) -> None:
    if permissions.denied:
        raise InputError(
            f"{path} is not read: {permissions.denied}",
            "its views do what no tool's do: look at where the file comes from",
        )
    if bounds.excess:
        raise InputError(
            f"{path} is not read: its views ask for more {bounds.excess} than a trace of its size "
            "can need",
            "look at where the file comes from; a whole trace can be exported by the tool as CSV",
        )


def _checked_schema(path: Path, plain: Path) -> int:
    """How many tables and views there are."""
    with plain.open("rb") as file:
        entries = header.schema_entries(file, _MOST_ENTRIES)
    if entries > _MOST_ENTRIES:
        raise InputError(
            f"{path} is not read: it has more than {_MOST_ENTRIES} tables and views",
            "no tool's trace has as many: look at where the file comes from",
        )
    return entries


def _check_finished(path: Path, plain: Path) -> None:
    with plain.open("rb") as file:
        if header.has_unfinished_pages(file):
            raise InputError(
                f"{path} has an unfinished write, and no journal lies beside it to undo it",
                unfinished.AGAIN,
            )


def _doubt(path: Path, plain: Path) -> str:
    """What may be missing; nothing where a log is there and empty: all of it is in the file."""
    log = f"{path.name.removesuffix('.gz')}-wal"
    if path.with_name(log).exists():
        return ""
    with plain.open("rb") as file:
        logged = header.header_of(file.read(header.HEADER_BYTES)).is_logged
    return _LOG_ABSENT.format(log) if logged else ""


def _used_bytes(plain: Path) -> int:
    """What the file holds of data: neither holes nor free pages buy an allowance."""
    status = plain.stat()
    with plain.open("rb") as file:
        head = header.header_of(file.read(header.HEADER_BYTES))
    size = min(status.st_size, status.st_blocks * 512)
    if head.pages:
        size = min(size, head.pages * head.page_bytes)
    return max(size - head.free_pages * head.page_bytes, 0)


def _is_gzipped(path: Path) -> bool:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} is no plain file", "name the database that the tool wrote")
        with path.open("rb") as file:
            return file.read(len(GZIP)) == GZIP
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}",
            "check the path and its permissions",
        ) from error


@contextmanager
def _inflated(path: Path, largest_bytes: int) -> Iterator[tuple[Path, str]]:
    from profharness.rundir.private.folders import private_folder

    with ExitStack() as stack:
        try:
            plain = stack.enter_context(private_folder()) / "plain.db"
            damage = _inflate(path, plain, largest_bytes)
        except OSError as error:
            raise InputError(
                f"{path} cannot be decompressed: {error.strerror or error}",
                "free some space, or choose another folder with TMPDIR",
            ) from error
        yield plain, damage


def _inflate(path: Path, plain: Path, largest_bytes: int) -> str:
    blocks = Blocks(path)
    size = 0
    with plain.open("wb") as out:
        for block in blocks:
            size += len(block)
            if size > largest_bytes:
                raise InputError(
                    f"{path} holds more than {largest_bytes >> 20} MiB",
                    "decompress it yourself and name the plain file",
                )
            out.write(block)
    return blocks.damage
