"""Secrets in SQLite databases: every text and blob of every table, found in one pass over the rows
and replaced in a private copy, which then takes the database's place.

What SQLite would have to recover is recovered first, by SQLite itself. Triggers of the file do not
run, its functions are not trusted, and time and memory are bounded: a database may come from
anywhere.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes import sqlite_file
from profharness.rundir.blocks import Blocks
from profharness.secrets.cells import NAME_COLUMNS, VALUE_COLUMNS, Cell, cleaned, closed
from profharness.secrets.names import MARKER, MARKER_START, looks_secret
from profharness.secrets.patterns import secret_spans, which_may_hold_secrets
from profharness.secrets.replacing import is_gzipped, private, replacing, take_place

BUSY_S = 5.0
_LARGEST_CELL = 64 << 20
_LONGEST_NAME = 128
_BATCH_BYTES, _BATCH_CELLS = 1 << 20, 1 << 13
_STEP = 1000  # instructions of SQLite's machine between two looks at the clock
_LEAST_S, _S_PER_MIB = 60.0, 10.0
# what indexes, constraints and generated columns may call: no longer than their values
_CALLED = frozenset(
    [
        "typeof",
        "length",
        "lower",
        "upper",
        "trim",
        "coalesce",
        "ifnull",
        "nullif",
        "iif",
        "abs",
        "json_valid",
        "json_type",
    ]
)
_UTF8 = "UTF-8"
_PAGES = ("-journal", "-wal")
_BESIDE = (*_PAGES, "-shm")


@dataclass(frozen=True)
class _Table:
    """A table, its columns, and for each the column that names its value, or may do so."""

    name: str
    columns: tuple[str, ...]
    called_by: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a database holds: values by variable or kind, columns with any, what was not read."""

    counts: Counter[str]
    columns: frozenset[tuple[str, str]]
    left: tuple[str, ...]


def lies_beside_one(path: Path) -> bool:
    """Whether this is the journal, log or shared memory of a database, which goes with that."""
    return database_beside(path) is not None


def database_beside(path: Path) -> Path | None:
    """The database whose journal, log or shared memory this is; None for another file."""
    for suffix in _BESIDE:
        of = path.with_name(path.name.removesuffix(suffix))
        if of.name != path.name and of.name and of.is_file():
            with of.open("rb") as file:
                return of if file.read(len(sqlite_file.MAGIC)) == sqlite_file.MAGIC else None
    return None


def find(path: Path) -> Found:
    """The secrets of a database, plain or gzipped. Raises InputError when it cannot be read."""
    counts: Counter[str] = Counter()
    columns: set[tuple[str, str]] = set()
    with sqlite_file.opened(path) as (connection, damage):
        if damage:
            raise InputError(
                f"{path} is damaged: {damage}", "copy or record it again; nothing was changed"
            )
        try:
            left = [
                f"the virtual table {name}, whose form only its module knows"
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
                )
            ]
            for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL"):
                if secret_spans(str(text).encode("utf-8", "surrogateescape")):
                    left.append("values that look secret in the definitions of its tables")
            for table in _tables(connection):
                for column, cell in _suspects(_cells(connection, table)):
                    if not cell.is_text and (packed := closed(cell.raw)):
                        left.append(f"blobs in {table.name}.{column} that are packed as {packed}")
                    found = cleaned(cell)[1]
                    if found:
                        counts += found
                        columns.add((table.name, column))
        except sqlite_file.DAMAGED as error:
            raise InputError(
                f"{path} is damaged: {error}", "copy or record it again; nothing was changed"
            ) from error
    if not counts:
        left += _beside(path)  # otherwise it goes with the secrets
    return Found(counts, frozenset(columns), tuple(dict.fromkeys(left)))


def _beside(path: Path) -> Iterator[str]:
    """What of a database without a secret holds pages as they were before, where one may stand."""
    for suffix in _PAGES:
        file = path.resolve().with_name(f"{path.resolve().name}{suffix}")
        if file.is_file() and file.stat().st_size:
            yield f"{file.name} beside it, which holds parts of it as they were before"


def clean(path: Path, columns: frozenset[tuple[str, str]]) -> None:
    """Replace the secrets in these columns. Raises InputError when the database is in use or cannot
    be written.
    """
    try:
        if is_gzipped(path):
            with private(path) as plain:
                with plain.open("wb") as out:
                    out.writelines(Blocks(path))
                _clean_copy(plain, columns)
                with replacing(path) as whole, plain.open("rb") as copied:
                    shutil.copyfileobj(copied, whole)
            return
        with closing(_own(path)) as connection, private(path) as copy:
            # SQLite recovers what a killed writer left, and takes in its log; this fails while
            # another program has the file open
            connection.execute("PRAGMA journal_mode = DELETE")
            # the lock stays after the transaction, in which SQLite would not copy
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            with closing(_own(copy)) as target:
                connection.backup(target)
            _clean_copy(copy, columns)
            # none is hot while this lock is held, but each holds pages as they were
            for suffix in _BESIDE:
                path.resolve().with_name(f"{path.resolve().name}{suffix}").unlink(missing_ok=True)
            take_place(copy, path)
    except (*sqlite_file.DAMAGED, MemoryError) as error:
        raise InputError(
            f"{path} cannot be cleaned: {error}",
            "close the programs that use it, and check that it is whole and may be written",
        ) from error


def _own(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_S
    )


def _tables(connection: sqlite3.Connection) -> Iterator[_Table]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    ).fetchall()
    for (name,) in names:
        # the last field says which columns are worked out from others
        columns = [
            str(row[1])
            for row in connection.execute(f"PRAGMA table_xinfo({_quoted(name)})")
            if not row[6]
        ]
        naming = next((one for one in columns if one.lower() in NAME_COLUMNS), "")
        yield _Table(
            name,
            tuple(columns),
            tuple(
                naming if naming and one.lower() in VALUE_COLUMNS else before
                for before, one in zip(("", *columns), columns, strict=False)
            ),
        )


def _cells(connection: sqlite3.Connection, table: _Table) -> Iterator[tuple[str, Cell]]:
    """Column and content of each text and blob, row by row."""
    if not table.columns:
        return
    kinds = [f"typeof({_quoted(column)})" for column in table.columns]
    wanted = [
        # numbers, of which most rows are made, are not handed over
        f"CASE WHEN {kind} IN ('text', 'blob') THEN {_quoted(column)} END"
        for kind, column in zip(kinds, table.columns, strict=True)
    ]
    anything = " OR ".join(f"{kind} IN ('text', 'blob')" for kind in kinds)
    rows = connection.execute(
        # names come from the file's own schema, quoted
        f"SELECT {', '.join(wanted)} FROM {_quoted(table.name)} "  # noqa: S608  quoted
        f"WHERE {anything}"
    )
    place = {column: at for at, column in enumerate(table.columns)}
    for row in rows:
        for column, called_by, value in zip(table.columns, table.called_by, row, strict=True):
            if value is not None and value != "":
                called = row[place[called_by]] if called_by and called_by != column else ""
                yield column, _cell(value, (column, called_by), called)


def _suspects(cells: Iterable[tuple[str, Cell]]) -> Iterator[tuple[str, Cell]]:
    """The cells that may hold a secret: all blobs, texts with a word of one, and those whose names
    say so. Of millions of cells hardly any does, and many are looked at together.
    """
    held: list[tuple[str, Cell]] = []
    size = 0
    for column, cell in cells:
        held.append((column, cell))
        size += len(cell.raw)
        if size >= _BATCH_BYTES or len(held) >= _BATCH_CELLS:
            yield from _suspects_of(held)
            held, size = [], 0
    yield from _suspects_of(held)


def _suspects_of(held: Sequence[tuple[str, Cell]]) -> Iterator[tuple[str, Cell]]:
    worded = set(which_may_hold_secrets([cell.raw for _, cell in held]))
    for at, (column, cell) in enumerate(held):
        is_named = cell.called or cell.beside or looks_secret(cell.column)
        if at in worded or is_named or not cell.is_text:
            yield column, cell


def _cell(value: str | bytes, columns: tuple[str, str], called: object) -> Cell:
    is_text = isinstance(value, str)
    # the connection gives texts that are no UTF-8 with marks in them
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    cell = Cell(raw, is_text, columns[0])
    return _named(cell, columns[1], called if isinstance(called, str) else "")


def _named(cell: Cell, called_by: str, called: str) -> Cell:
    """With what names it in its row; not with other texts, so that cells repeat."""
    if len(called) > _LONGEST_NAME or not looks_secret(called):
        return cell
    is_value = cell.column.lower() in VALUE_COLUMNS and called_by.lower() in NAME_COLUMNS
    return replace(cell, called=called) if is_value else replace(cell, beside=called)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------- a private copy


def _clean_copy(path: Path, columns: frozenset[tuple[str, str]]) -> None:
    with closing(_own(path)) as connection:
        # nobody else has this copy, and its loss is no loss
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_CELL)
        seconds = _LEAST_S + _S_PER_MIB * path.stat().st_size / (1 << 20)
        ends = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > ends, _STEP)
        _check_definitions(connection)
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {_quoted(name)}")
        # as bytes, a text has the encoding of its database
        codec = str(connection.execute("PRAGMA encoding").fetchone()[0])
        for table in list(_tables(connection)):
            _clean_table(connection, table, columns, codec)
        for _, text in triggers:
            connection.execute(text)
        connection.execute("VACUUM")


def _check_definitions(connection: sqlite3.Connection) -> None:
    """Make the tables and indexes anew without rows, where SQLite asks for each function that an
    expression calls; of a schema that it reads from a file it does not. Raises sqlite3.Error for
    a function whose cost the size of the rows does not bound.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        empty.set_authorizer(_may)
        for (text,) in connection.execute(
            "SELECT sql FROM sqlite_master WHERE type IN ('table', 'index') AND rootpage > 0 "
            "AND sql NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'index'"
        ):
            empty.execute(text)


def _may(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _CALLED:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _clean_table(
    connection: sqlite3.Connection,
    table: _Table,
    columns: frozenset[tuple[str, str]],
    codec: str,
) -> None:
    for column, called_by in zip(table.columns, table.called_by, strict=True):
        if (table.name, column) in columns:
            try:
                _clean_column(connection, table.name, (column, called_by), codec, is_unique=False)
            except sqlite3.IntegrityError:
                _clean_column(connection, table.name, (column, called_by), codec, is_unique=True)


def _clean_column(
    connection: sqlite3.Connection,
    table: str,
    columns: tuple[str, str],
    codec: str,
    *,
    is_unique: bool,
) -> None:
    """Replace the secrets of a column, by marks that differ where its values have to."""
    column, called_by = columns
    seen: dict[bytes, int] = {}

    def renewed(raw: bytes, is_text: int, called: bytes | None) -> bytes:
        name = (called or b"").decode(codec, "replace")
        if is_text and codec != _UTF8:
            plain = raw.decode(codec, "replace").encode("utf-8", "replace")
            new = renewed_plain(plain, 1, name)
            return raw if new == plain else new.decode().encode(codec)
        return renewed_plain(raw, is_text, name)

    def renewed_plain(raw: bytes, is_text: int, name: str) -> bytes:
        new = cleaned(_named(Cell(raw, bool(is_text), column), called_by, name))[0]
        if is_unique and is_text and new != raw:
            number = seen.setdefault(raw, len(seen) + 1)
            new = new.replace(MARKER.encode(), f"{MARKER_START} {number}]".encode())
        return new

    # as bytes: texts that are no UTF-8 cannot be handed to Python
    connection.create_function("profharness_cleaned", 3, renewed)
    own = _quoted(column)
    calling = f"CAST({_quoted(called_by)} AS BLOB)" if called_by not in ("", column) else "NULL"
    new = (
        f"CASE typeof({own}) WHEN 'text' "
        f"THEN CAST(profharness_cleaned(CAST({own} AS BLOB), 1, {calling}) AS TEXT) "
        f"ELSE profharness_cleaned({own}, 0, {calling}) END"
    )
    connection.execute(
        # names come from the file's own schema, quoted
        f"UPDATE {_quoted(table)} SET {own} = {new} "  # noqa: S608  quoted
        f"WHERE typeof({own}) IN ('text', 'blob') AND {new} IS NOT {own}"
    )
