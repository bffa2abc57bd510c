"""Changes of SQLite databases: cells and schema by SQL, and bytes of headers and pages."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.hostile import extremes, raw

_HEADER = 100
_ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n",
    (
        "SELECT {columns} FROM sqlite_master a, sqlite_master b, sqlite_master c, sqlite_master d, "
        "sqlite_master e, sqlite_master f"
    ),
    "SELECT {columns} FROM {own}",
)


def _names(database: sqlite3.Connection, kind: str) -> list[str]:
    rows = database.execute(
        "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name",
        (kind,),
    )
    return [name for (name,) in rows]


def _filled(database: sqlite3.Connection) -> list[str]:
    return [
        name
        for name in _names(database, "table")
        if database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
    ]


def _column(database: sqlite3.Connection, table: str, rng: random.Random) -> str:
    return str(rng.choice(database.execute(f'PRAGMA table_info("{table}")').fetchall())[1])


def _value(rng: random.Random) -> object:
    kind = rng.randrange(6)
    if kind < 3:
        text = extremes.number(rng)
        try:
            number = float(text) if "." in text or "e" in text else int(text)
        except ValueError:
            return text
        return number if isinstance(number, float) or -(1 << 63) <= number < 1 << 63 else text
    return extremes.text(rng) if kind == 3 else rng.choice((None, b"\xff\0", b"", "{", '{"a":[1'))


def set_cell(database: sqlite3.Connection, rng: random.Random) -> None:
    table = rng.choice(_filled(database))
    column = _column(database, table, rng)
    rows = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}" LIMIT 500')]
    database.execute(
        f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (_value(rng), rng.choice(rows))
    )


def set_column(database: sqlite3.Connection, rng: random.Random) -> None:
    table = rng.choice(_filled(database))
    database.execute(f'UPDATE "{table}" SET "{_column(database, table, rng)}" = ?', (_value(rng),))


def delete_rows(database: sqlite3.Connection, rng: random.Random) -> None:
    table = rng.choice(_filled(database))
    every = rng.choice((1, 2, 3))
    database.execute(f'DELETE FROM "{table}" WHERE rowid % {every} = 0')


def copy_rows(database: sqlite3.Connection, rng: random.Random) -> None:
    """Rows once more, under new keys."""
    table = rng.choice(_filled(database))
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")') if not row[5]]
    listed = ", ".join(f'"{column}"' for column in columns)
    if columns:
        database.execute(f'INSERT INTO "{table}" ({listed}) SELECT {listed} FROM "{table}"')


def drop_table(database: sqlite3.Connection, rng: random.Random) -> None:
    database.execute(f'DROP TABLE "{rng.choice(_names(database, "table"))}"')


def drop_view(database: sqlite3.Connection, rng: random.Random) -> None:
    views = _names(database, "view")
    if views:
        database.execute(f'DROP VIEW "{rng.choice(views)}"')


def rename_column(database: sqlite3.Connection, rng: random.Random) -> None:
    database.execute("PRAGMA legacy_alter_table = ON")
    table = rng.choice(_names(database, "table"))
    column = _column(database, table, rng)
    database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')


def drop_column(database: sqlite3.Connection, rng: random.Random) -> None:
    database.execute("PRAGMA legacy_alter_table = ON")
    table = rng.choice(_names(database, "table"))
    database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{_column(database, table, rng)}"')


def rename_table(database: sqlite3.Connection, rng: random.Random) -> None:
    database.execute("PRAGMA legacy_alter_table = ON")
    database.execute(f'ALTER TABLE "{rng.choice(_names(database, "table"))}" RENAME TO "other"')


def endless_view(database: sqlite3.Connection, rng: random.Random) -> None:
    """A table or view becomes a view of the same columns that does not end, or is of itself."""
    name = rng.choice(_names(database, "view") or _names(database, "table"))
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
    kind = "VIEW" if name in _names(database, "view") else "TABLE"
    database.execute(f'DROP {kind} "{name}"')
    body = rng.choice(_ENDLESS).format(
        columns=", ".join(f'1 AS "{column}"' for column in columns) or "1", own=f'"{name}"'
    )
    database.execute(f'CREATE VIEW "{name}" AS {body}')


def wide_view(database: sqlite3.Connection, rng: random.Random) -> None:
    """Tables behind a view of the same name, whose functions no reader expects."""
    table = rng.choice(_filled(database))
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    database.execute("PRAGMA legacy_alter_table = ON")
    database.execute(f'ALTER TABLE "{table}" RENAME TO "moved"')
    evil = rng.choice(("zeroblob(1000000000)", "hex(zeroblob(100000000))", "load_extension('x')",
                       "randomblob(200000000)", "abs(-9223372036854775808)", "json('{')"))  # fmt: skip
    shown = [f'"{column}"' for column in columns]
    shown[rng.randrange(len(shown))] = f'{evil} AS "{rng.choice(columns)}"'
    database.execute(f'CREATE VIEW "{table}" AS SELECT {", ".join(shown)} FROM "moved"')


def schema_text(database: sqlite3.Connection, rng: random.Random) -> None:
    """What the schema says of a table, and where its pages are."""
    database.execute("PRAGMA writable_schema = ON")
    kind = rng.choice(("sql", "rootpage", "name", "type"))
    value = _value(rng) if kind != "rootpage" else rng.choice((0, 1, 2, 5, 1 << 31, -1))
    database.execute(
        f"UPDATE sqlite_master SET {kind} = ? WHERE rowid = (SELECT rowid FROM sqlite_master "
        "ORDER BY rowid LIMIT 1 OFFSET ?)",
        (value, rng.randrange(20)),
    )


SQL: tuple[Callable[[sqlite3.Connection, random.Random], None], ...] = (
    set_cell, set_cell, set_cell, set_column, set_column, set_column, delete_rows, copy_rows,
    drop_table, drop_view, rename_column, drop_column, rename_table, endless_view, wide_view,
    schema_text,
)  # fmt: skip


def header_bytes(data: bytes, rng: random.Random) -> bytes:
    """Page size, versions, counts, encoding: any of the first hundred bytes but the magic."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4))):
        if len(changed) > _HEADER:
            changed[rng.randrange(16, _HEADER)] = rng.choice((0, 1, 2, 3, 255, rng.randrange(256)))
    return bytes(changed)


def page_header(data: bytes, rng: random.Random) -> bytes:
    """Kind, number of cells and first places of a page."""
    changed = bytearray(data)
    size = int.from_bytes(data[16:18]) or 4096
    page = rng.randrange(max(1, len(data) // size)) * size
    start = page + (_HEADER if page == 0 else 0)
    for _ in range(rng.choice((1, 2))):
        at = start + rng.randrange(20)
        if at < len(changed):
            changed[at] = rng.choice((0, 1, 2, 5, 10, 13, 255, rng.randrange(256)))
    return bytes(changed)


def exchange_pages(data: bytes, rng: random.Random) -> bytes:
    size = int.from_bytes(data[16:18]) or 4096
    pages = [data[at : at + size] for at in range(0, len(data), size)]
    if len(pages) > 2:
        one, other = rng.randrange(1, len(pages)), rng.randrange(1, len(pages))
        pages[one], pages[other] = pages[other], rng.choice((pages[one], bytes(size)))
    return b"".join(pages)


def last_pages(data: bytes, rng: random.Random) -> bytes:
    """Some pages of the end are missing, as after a copy that ended too early."""
    size = int.from_bytes(data[16:18]) or 4096
    return data[: max(size, len(data) - size * rng.randrange(1, 20))]


BYTES: tuple[raw.Change, ...] = (
    header_bytes, page_header, page_header, exchange_pages, last_pages, raw.flip_bits, raw.set_bytes,
    raw.replace_bytes,
)  # fmt: skip


class _Patience:
    """Ends a statement after so many steps: earlier damage can make it go round for ever."""

    def __init__(self) -> None:
        self.left = 1000

    def over(self) -> bool:
        self.left -= 1
        return self.left < 0


def change(data: bytes, rng: random.Random, folder: Path) -> tuple[bytes, str]:
    """The database with one change, and its name. SQL that the damage of an earlier change stops is
    a change of bytes.
    """
    if rng.random() < 0.6:
        chosen = rng.choice(SQL)
        path = folder / "changing.db"
        path.write_bytes(data)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as database:
                database.set_progress_handler(_Patience().over, 10_000)
                database.execute("PRAGMA synchronous = OFF")
                database.execute("PRAGMA journal_mode = MEMORY")
                chosen(database, rng)
            return path.read_bytes(), f"sqlite.{chosen.__name__}"
        except (sqlite3.Error, IndexError, UnicodeDecodeError):  # of SQLite's own message, too
            pass
        finally:
            path.unlink()
    change_it = rng.choice(BYTES)
    return change_it(data, rng), f"sqlite.{change_it.__name__}"
