"""A program that writes a database of kernels is killed at a random moment; what we then read of
the file must be what SQLite itself recovers: `python -m tests.faults.sqlite_writer TRIES SEED`.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from profharness import readers
from profharness.errors import InputError
from tests.faults.outcome import Outcome

JOURNALS = ("delete", "truncate", "persist", "wal")
_LATEST_S = 60.0
# many rows in one transaction, with a cache that does not hold them: the file is changed long
# before the write is finished
_WRITER = """
import sqlite3, sys
path, journal, synchronous, rows, cache = sys.argv[1:]
file = sqlite3.connect(path, isolation_level=None)
file.execute(f"PRAGMA cache_size = {cache}")
file.execute(f"PRAGMA journal_mode = {journal}")
file.execute(f"PRAGMA synchronous = {synchronous}")
print("ready", flush=True)
number = 0
while True:
    file.execute("BEGIN")
    if number % 3 == 2:
        file.execute('DELETE FROM OPS WHERE rowid % 3 = 1')
    if number % 2:
        file.execute('UPDATE OPS SET EndNs = BeginNs + 100000000000')
    for row in range(int(rows)):
        start = (number * int(rows) + row) * 5_000_000
        file.execute(
            'INSERT INTO OPS VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
            (start, start + 3_900_000, 0, 0, 0, f"kernel_{row % 7}" * 20, row, 1, 7, 7),
        )
    if number % 2:
        file.execute('UPDATE OPS SET EndNs = BeginNs + 3900000')
    file.execute("COMMIT")
    number += 1
"""
_SCHEMA = (
    'CREATE TABLE OPS ("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, "queue-id" INTEGER, '
    '"stream-id" INTEGER, "Name" TEXT, "Index" INTEGER, "proc-id" INTEGER, "pid" INTEGER, '
    '"tid" INTEGER)'
)


@dataclass(frozen=True)
class Figures:
    """What a database holds: kernels, and the sum of their durations in ns."""

    kernels: int
    total_ns: int


@dataclass(frozen=True)
class Try:
    """One killed writer. `ours` is None where we refused to read, `alone` what the file says
    without what lies beside it, None where that is damaged.
    """

    outcome: Outcome
    unfinished: bool
    ours: Figures | None
    alone: Figures | None
    truth: Figures


def attempt(folder: Path, random: Random) -> Outcome:
    """Kill one writer, and compare."""
    return kill_a_writer(folder, random).outcome


def kill_a_writer(folder: Path, random: Random) -> Try:
    path = folder / "results.db"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute(_SCHEMA)
        file.commit()
    hit = _write_and_kill(path, random)
    before = _bytes_in(folder)
    ours, faults = _ours(path)
    if _bytes_in(folder) != before:
        faults += ("reading changed what lies in the folder",)
    copy = Path(shutil.copytree(folder, folder.with_name(f"{folder.name}-truth"))) / path.name
    truth = _by_sqlite(copy, f"file:{copy}")
    try:
        alone = _by_sqlite(path, f"file:{path}?mode=ro&immutable=1")
    except sqlite3.Error:
        alone = None
    shutil.rmtree(copy.parent)
    # a refusal shows no figure; it would hide a defect where nothing is wrong with the files
    if ours is None:
        faults += (f"a file that SQLite recovers was refused ({truth.kernels} kernels)",)
    return Try(
        Outcome(hit, differing_figures=int(ours not in (None, truth)), faults=faults),
        any(name != path.name and content.strip(b"\0") for name, content in before.items()),
        ours,
        alone,
        truth,
    )


def _write_and_kill(path: Path, random: Random) -> bool:
    """Whether the writer still lived when the signal came."""
    words = (
        random.choice(JOURNALS),
        random.choice(("off", "normal", "full")),
        str(random.choice((20, 300, 3000))),
        str(random.choice((5, 20, 2000))),
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), *words], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(random.uniform(0.0, 0.25))
    hit = writer.poll() is None
    writer.send_signal(signal.SIGKILL)
    writer.wait(_LATEST_S)
    writer.stdout.close()
    return hit


def _ours(path: Path) -> tuple[Figures | None, tuple[str, ...]]:
    try:
        kernels = readers.read(path).kernels
    except InputError as error:
        if "no kernel" in error.message or "no record" in error.message:
            return Figures(0, 0), ()
        return None, (error.message,)
    return Figures(len(kernels), int(kernels.dur_ns.sum())), ()


def _by_sqlite(path: Path, uri: str) -> Figures:
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as file:
        count, total = file.execute("SELECT count(*), total(EndNs - BeginNs) FROM OPS").fetchone()
    return Figures(count, int(total))


def _bytes_in(folder: Path) -> dict[str, bytes]:
    """All files but the shared memory of a log, which holds locks only."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


def main(tries: int, seed: int) -> int:
    """Print how many writers were killed, and what their files were read as."""
    random = Random(seed)
    done: list[Try] = []
    for number in range(tries):
        with tempfile.TemporaryDirectory(prefix="killed-writer-") as base:
            folder = Path(base) / str(number)
            folder.mkdir()
            done.append(kill_a_writer(folder, random))
    faults = [fault for one in done for fault in one.outcome.faults]
    differing = sum(one.outcome.differing_figures for one in done)
    print(f"{sum(one.outcome.hit for one in done)} writers killed of {tries}, seed {seed}")
    print(f"{sum(one.unfinished for one in done)} left a journal or a log beside the file")
    print(f"{sum(one.alone != one.truth for one in done)} files are wrong when they are read alone")
    print(f"{differing} figures differ from SQLite's own recovery")
    for fault in faults[:10]:
        print(f"fault: {fault}")
    return int(bool(faults or differing))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
