from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.rundir.databases import snapshot
from profharness.rundir.databases.header import JOURNAL_MAGIC
from profharness.rundir.databases.opening import opened

ROWS = 2000


def crashed(folder: Path, journal: str) -> Path:
    """A database as a program leaves it that is killed in the middle of changing all of its rows:
    a copy of the files while the write goes on, with a cache too small for it.
    """
    path = folder / "live.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA cache_size = 5")
        file.execute(f"PRAGMA journal_mode = {journal}")
        file.execute("CREATE TABLE record (dur INTEGER, text TEXT)")
        if journal == "wal":
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = [(1, "x" * 50)] * ROWS
        file.execute("BEGIN")
        file.executemany("INSERT INTO record VALUES (?, ?)", rows)
        file.execute("COMMIT")
        file.execute("BEGIN")
        file.execute("UPDATE record SET dur = 1000")
        file.executemany("INSERT INTO record VALUES (?, ?)", rows)
        left = folder / "left"
        left.mkdir()
        for one in folder.glob("live.db*"):
            if one.suffix != ".db-shm":
                shutil.copy(one, left / one.name.replace("live", "results"))
    return left / "results.db"


def read(path: Path) -> tuple[int, int]:
    with opened(path) as file:
        return file.connection.execute("SELECT count(*), sum(dur) FROM record").fetchone()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """TMPDIR, which must be empty in the end."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


@pytest.mark.parametrize("journal", ["delete", "truncate", "persist", "wal"])
def test_an_unfinished_write_is_undone_in_a_copy(
    tmp_path: Path, journal: str, temporary: Path
) -> None:
    path = crashed(tmp_path, journal)
    before = files(path.parent)
    path.parent.chmod(0o500)
    try:
        assert read(path) == (ROWS, ROWS)
        with opened(path) as file:
            assert "recovers it" in file.recovered
    finally:
        path.parent.chmod(0o700)
    assert files(path.parent) == before


def test_a_file_whose_journal_is_gone_is_refused(tmp_path: Path) -> None:
    path = crashed(tmp_path, "delete")
    path.with_name("results.db-journal").unlink()
    with pytest.raises(InputError, match="has an unfinished write, and no journal"):
        read(path)


def test_a_file_whose_log_is_gone_says_what_may_be_missing(tmp_path: Path) -> None:
    path = crashed(tmp_path, "wal")
    path.with_name("results.db-wal").unlink()
    with opened(path) as file:
        assert "results.db-wal" in file.doubt
    path.with_name("results.db-wal").touch()
    with opened(path) as file:
        assert not file.doubt


def test_the_journal_of_another_database_is_refused(tmp_path: Path, temporary: Path) -> None:
    path = crashed(tmp_path, "delete")
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other, isolation_level=None)) as file:
        file.execute("CREATE TABLE record (dur INTEGER, text TEXT, more TEXT)")
        for _ in range(9):
            file.execute("INSERT INTO record VALUES (5, ?, ?)", ("y" * 3000, "z" * 3000))
    shutil.copy(other, path)
    with pytest.raises(InputError, match=r"results\.db-journal beside it does not belong to it"):
        read(path)


def test_what_lies_beside_is_not_followed(tmp_path: Path) -> None:
    path = crashed(tmp_path, "delete")
    journal = path.with_name("results.db-journal")
    journal.rename(tmp_path / "elsewhere")
    journal.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is no plain file"):
        read(path)
    journal.unlink()
    os.mkfifo(journal)
    with pytest.raises(InputError, match="is no plain file"):
        read(path)


@pytest.mark.parametrize("where", ["there", "gone", "elsewhere"])
def test_a_super_journal_decides_and_is_never_deleted(
    tmp_path: Path, where: str, temporary: Path
) -> None:
    """SQLite deletes the file that a journal names so, once it has undone the write."""
    path = crashed(tmp_path, "delete")
    journal = path.with_name("results.db-journal")
    named = path.with_name("results.db-mj1") if where != "elsewhere" else Path("/nowhere/x-mj1")
    if where == "there":
        named.write_text("somebody's own file")
    name = os.fsencode(named)
    with journal.open("ab") as file:
        numbers = (len(name), sum(name))
        file.write(b"\0\0\0\0" + name + b"".join(n.to_bytes(4, "big") for n in numbers))
        file.write(JOURNAL_MAGIC)
    if where == "elsewhere":
        with pytest.raises(InputError, match="together with other databases"):
            read(path)
        return
    if where == "there":
        assert read(path) == (ROWS, ROWS)
        assert named.read_text() == "somebody's own file"
        return
    copy = tmp_path / "truth"
    shutil.copytree(path.parent, copy)
    with pytest.raises(InputError, match="no journal"):
        read(path)  # as SQLite has it the write was finished, but its size says that it was not


def test_no_room_for_the_copy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    path = crashed(tmp_path, "delete")
    monkeypatch.setattr(snapshot, "free_bytes", lambda _: 1000)
    with pytest.raises(InputError, match="has no room for the copy") as error:
        read(path)
    assert "TMPDIR" in error.value.hint


WRITER = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA journal_mode = MEMORY")
file.execute("PRAGMA cache_size = 5")
file.execute("CREATE TABLE record (dur INTEGER, text TEXT)")
file.execute("BEGIN EXCLUSIVE")
print("writing", flush=True)
sys.stdin.read()
"""


def test_a_writer_that_still_holds_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        with pytest.raises(InputError, match=f"being written by process {writer.pid}"):
            read(path)
        writer.kill()
    assert read(path) == (0, None)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("CREATE TABLE record (dur INTEGER)")
        with pytest.raises(InputError, match="was changed while it was read"), opened(path):
            file.execute("INSERT INTO record VALUES (1)")


STOPPED = """
import sys, time
from pathlib import Path
from profharness.rundir.databases.opening import opened
with opened(Path(sys.argv[1])):
    print("open", flush=True)
    time.sleep(60)
"""


def test_a_signal_removes_the_copy(tmp_path: Path) -> None:
    path = crashed(tmp_path, "delete")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP):
        with subprocess.Popen(
            [sys.executable, "-c", STOPPED, str(path)], stdout=subprocess.PIPE, env=environment
        ) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline()
            assert len(list(temporary.iterdir())) == 1  # what a kill left was swept
            reader.send_signal(number)
            assert reader.wait(30) == -number
    assert not list(temporary.iterdir())
