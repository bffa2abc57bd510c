from __future__ import annotations

import contextlib
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.rundir.databases.guard import Texts
from profharness.rundir.databases.opening import opened
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program
from tests.rundir.databases import hostile

SAID = {
    "recursive": "a view that is defined by itself",
    "zeroblob": "the function zeroblob",
    "doubling": "made of too many others",
    "doubling-inside": "more memory",
    "tables": "more than 20000 tables",
    "columns": "too many columns",
    "virtual": "not read",
    "extension": "load_extension",
    "generated": "the function instr",
}
LONG = {
    "joins": "more (work|time)",
    "padded": "more (work|time)",
    "json": "more time",
    "blobs": "more memory",
    "texts": "more memory",
}


def refused(path: Path, words: str) -> None:
    began = time.thread_time()
    with pytest.raises(InputError, match=words):
        readers.read(path)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("bomb", SAID)
def test_a_bomb_is_answered_soon(tmp_path: Path, bomb: str) -> None:
    refused(hostile.write(tmp_path / "a.db", bomb), SAID[bomb])


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("bomb", LONG)
def test_a_bomb_that_works_for_seconds_is_answered_too(tmp_path: Path, bomb: str) -> None:
    refused(hostile.write(tmp_path / "a.db", bomb), LONG[bomb])


@pytest.mark.parametrize(
    "statement",
    [
        "DROP VIEW rocpd_string",
        "CREATE TABLE x (y)",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "SELECT load_extension('x.so')",
        "SELECT randomblob(9)",
    ],
)
def test_a_connection_can_only_read(tmp_path: Path, statement: str) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1))
    with pytest.raises(InputError, match="not read"), opened(path) as file:
        file.connection.execute(statement)


def test_a_caught_refusal_is_told_in_the_end(tmp_path: Path) -> None:
    """Readers keep what other views gave; figures of such a file do not leave."""
    path = write_rocpd(tmp_path / "a.db", program(1))
    with pytest.raises(InputError, match="the function randomblob"), opened(path) as file:
        caught(file.connection)


def caught(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.DatabaseError):
        connection.execute("SELECT randomblob(9)")


def test_plain_clauses_of_tables_are_no_calls(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1))
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE kept (a INTEGER PRIMARY KEY ON CONFLICT REPLACE, b TEXT)")
        file.execute("CREATE INDEX of_kept ON kept (b)")
        file.execute("CREATE TABLE made (a INT, b INT AS (a + 1), UNIQUE (a) ON CONFLICT REPLACE)")
        file.commit()
    assert len(readers.read(path).kernels) == 40
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE INDEX worse ON kept (instr(b, 'x'))")
        file.commit()
    with pytest.raises(InputError, match="the function instr"):
        readers.read(path)


def test_texts_are_decoded_once_and_forgotten_in_time() -> None:
    texts = Texts()
    assert texts[b"a\xffb"] == "a\ufffdb"
    assert texts[b"kernel"] is texts[b"kernel"]
    for number in range(300):
        assert len(texts[b"%d" % number + b"x" * 100_000]) > 100_000
    assert sum(map(sys.getsizeof, texts)) < 5 << 20
