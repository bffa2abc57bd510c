"""Secrets in the files that tools left: found after a run, and removed from a file in place.

rocprofv3's databases hold the whole environment of the process (`rocpd_info_process.environment`),
and JSON and Perfetto traces may. SQLite is changed in one transaction and rewritten (secure_delete,
VACUUM), so that no old value stays in a free page; text, JSON and Perfetto traces are written to a
file beside, which then takes their place. All may be gzipped. Other binary files are not looked
into.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from profharness.errors import InputError
from profharness.findings import Finding, finding
from profharness.readers.bytes import sqlite_file
from profharness.readers.perfetto import reader as pftrace
from profharness.rundir.blocks import GZIP, Blocks, read_head
from profharness.rundir.manifest import Artifact
from profharness.rundir.paths import MANIFEST
from profharness.secrets import perfetto as perfetto_secrets
from profharness.secrets.patterns import clean_blocks, clean_text

_HEAD_BYTES = 1 << 18
_TEXT_BYTES = 4096
# tables by their name without the process's GUID, and the columns that may hold an environment or a
# command line
_COLUMNS = {
    "rocpd_info_process": ("environment", "command", "extdata"),
    "rocpd_metadata": ("value",),
}
_BUSY_S = 5.0


def files_of(path: Path) -> list[Path]:
    """The file itself, or what tools and the program left in a run directory: its products and our
    own records hold no secret.
    """
    if not (path / MANIFEST).is_file():
        return [path]
    return sorted(
        file
        for pattern in ("artifacts/**/*", "points/**/*.log")
        for file in path.glob(pattern)
        if file.is_file()
    )


def scan(path: Path) -> Counter[str]:
    """How many secret values of each variable (or kind of value) the file holds; an empty file
    holds none.

    Raises InputError when it cannot be read, and when it is neither SQLite nor a Perfetto trace nor
    JSON nor text.
    """
    found: Counter[str] = Counter()
    if _is_empty(path):
        return found
    kind = _kind(path)
    if kind == "perfetto":
        return perfetto_secrets.find(path).counts
    if kind == "database":
        with sqlite_file.opened(path) as (connection, _):
            try:
                for _change in _changes(connection, found):
                    pass
            except sqlite_file.DAMAGED as error:
                raise _damaged(path, str(error)) from error
        return found
    for _clean in clean_blocks(Blocks(path), found):
        pass
    return found


def scrub(path: Path) -> Counter[str]:
    """Replace the secret values in the file and say how many of each variable; a file without any
    stays as it is.

    A reader or a kill sees the old or the new content. Raises InputError as `scan` does, and when
    the file is damaged or cannot be written.
    """
    if not (found := scan(path)):
        return found
    try:
        return {"database": _scrub_database, "perfetto": _scrub_perfetto, "text": _scrub_text}[
            _kind(path)
        ](path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}",
            "check the permissions of the file and its folder, and the space there",
        ) from error


def findings(root: Path, artifacts: Sequence[Artifact]) -> tuple[Finding, ...]:
    """What there is to say of a pass's files: one finding of all that hold secrets. Files that
    cannot be read are others' business.
    """
    held: list[str] = []
    total: Counter[str] = Counter()
    for artifact in artifacts:
        try:
            found = scan(root / artifact.path)
        except InputError:
            continue
        if found:
            held.append(artifact.path)
            total += found
    if not held:
        return ()
    where = held[0] if len(held) == 1 else f"{held[0]} and {len(held) - 1} more"
    return (
        finding(
            "secrets-in-artifact",
            f"{where}: values that look secret ({names_with_counts(total)})",
            files=len(held),
            values=total.total(),
        ),
    )


def names_with_counts(found: Counter[str]) -> str:
    """`HF_TOKEN x2, WANDB_API_KEY`, by name."""
    return ", ".join(
        name if count == 1 else f"{name} x{count}" for name, count in sorted(found.items())
    )


def _is_empty(path: Path) -> bool:
    """As the logs of a program that said nothing."""
    return path.is_file() and path.stat().st_size == 0


def _kind(path: Path) -> Literal["database", "perfetto", "text"]:
    """What has to be done to it. Raises InputError for a file that is none of these."""
    head = read_head(path, _HEAD_BYTES)
    if head.startswith(sqlite_file.MAGIC):
        return "database"
    if not any(byte < 9 for byte in head[:_TEXT_BYTES]):
        return "text"
    if pftrace.sniff(head, path.name):
        return "perfetto"
    raise InputError(
        f"{path} is neither SQLite nor a Perfetto trace nor JSON nor text",
        "other binary files cannot be cleaned in place: record again without the variable",
    )


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged: {why}", "copy or record it again; nothing was changed")


# ---------------------------------------------------------------- SQLite


def _changes(
    connection: sqlite3.Connection, found: Counter[str]
) -> Iterator[tuple[str, str, int, str | bytes]]:
    """Table, column, row and new value of each cell that holds a secret."""
    names = [
        str(row[0])
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    for table in names:
        wanted = next(
            (
                columns
                for stem, columns in _COLUMNS.items()
                if table == stem or table.startswith(f"{stem}_")
            ),
            (),
        )
        present = {
            str(row[1]) for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")
        }
        for column in wanted:
            if column in present:
                rows = connection.execute(
                    # names come from the file's own schema, quoted
                    f"SELECT rowid, {_quoted(column)} FROM {_quoted(table)}"  # noqa: S608  quoted
                ).fetchall()
                yield from (
                    (table, column, int(row), new)
                    for row, old in rows
                    if (new := _cell(old, found)) != old and new is not None
                )


def _cell(old: object, found: Counter[str]) -> str | bytes | None:
    if isinstance(old, str):
        return clean_text(old, found)
    is_text = isinstance(old, bytes) and old.startswith(
        (b"{", b"[")
    )  # SQLite's own binary JSON holds lengths, which a replacement would break
    return b"".join(clean_blocks((old,), found)) if isinstance(old, bytes) and is_text else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _scrub_database(path: Path) -> Counter[str]:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    if not packed:
        return _clean_database(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.resolve().parent) as folder:
        plain = Path(folder) / "database"
        blocks = Blocks(path)
        with plain.open("wb") as out:
            out.writelines(blocks)
        if blocks.damage:
            raise _damaged(path, blocks.damage)
        found = _clean_database(plain)
        with _replacing(path) as whole, plain.open("rb") as clean:
            shutil.copyfileobj(clean, whole)
    return found


def _clean_database(path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    try:
        with closing(
            sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_S,
            )
        ) as connection:
            # a write-ahead log beside the file would keep the old pages; this fails while another
            # program has the file open
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            for table, column, row, new in list(_changes(connection, found)):
                place = f"{_quoted(table)} SET {_quoted(column)}"
                # as above
                connection.execute(f"UPDATE {place} = ? WHERE rowid = ?", (new, row))
            connection.execute("COMMIT")
            connection.execute("VACUUM")
    except sqlite_file.DAMAGED as error:
        raise InputError(
            f"{path} cannot be cleaned: {error}",
            "close the programs that use it, and check that it is whole and may be written",
        ) from error
    return found


# ---------------------------------------------------------------- text, JSON and Perfetto traces


def _scrub_text(path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    blocks = Blocks(path)
    with _replacing(path) as out:
        for clean in clean_blocks(blocks, found):
            out.write(clean)
        if blocks.damage:
            raise _damaged(path, blocks.damage)
    return found


def _scrub_perfetto(path: Path) -> Counter[str]:
    found = perfetto_secrets.find(path)
    with _replacing(path) as out:
        found.write(out)
    return found.counts


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """What is written takes the file's place when it is whole, compressed where the file was."""
    with path.open("rb") as file:
        compressed = file.read(len(GZIP)) == GZIP
    target = path.resolve()  # of a link the file itself, so that the link stays
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            if compressed:
                with gzip.GzipFile(
                    filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0
                ) as packed:
                    yield packed
            else:
                yield out
            out.flush()
            os.fsync(out.fileno())
        temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
