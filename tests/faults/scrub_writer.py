"""`kill -9` of `profharness scrub` at random moments: each file of the run that it cleans is the old
or the new one, never half of one, and the next scrub finishes the work and leaves nothing of it.
"""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

from profharness.secrets import scrub as scrubbing
from tests import started
from tests.faults.outcome import Outcome
from tests.secrets.planted.containers import CONTAINERS
from tests.secrets.planted.kinds import KINDS

_WITHIN_S = 60.0
_LONGEST_S = 0.05
_LOOK_S = 0.0005
_ROWS = 2000  # of the database and of the log, whose writing takes time
_SMALL = ("gz", "JSON", "Parquet", "pftrace", "manifest", "SQLite gz blob")
_LINE = "2026-01-01 12:00:00 INFO {name}={value} step {number} of 2000\n"


def attempt(folder: Path, random: Random) -> Outcome:
    """Kill one scrub while it writes a file drawn at random."""
    secrets = _plant(folder / "run", random)
    shutil.copytree(folder / "run", folder / "new")
    for path in scrubbing.files_of(folder / "new")[0]:
        scrubbing.scrub(path)
    new = _contents(folder / "new")
    old = _contents(folder / "run")
    same = {name for name, content in old.items() if content == new[name]}
    faults = [f"{name} was not cleaned at all" for name in sorted(same)]
    hit = _start_and_kill(folder / "run", random)
    for name, content in _contents(folder / "run").items():
        if content not in (old.get(name), new.get(name)):
            faults.append(f"{name} is neither the old nor the new one")
    faults += _finished(folder / "run", new, secrets)
    return Outcome(hit, faults=tuple(faults))


def _plant(run: Path, random: Random) -> list[str]:
    """A run of files of many kinds; the secrets in them."""
    run.mkdir()
    secrets: list[str] = []
    for container in _SMALL:
        name, write = CONTAINERS[container]
        kind = next(one for one in KINDS if one.name == "Hugging Face token")
        value = kind.make(random)
        write(run / name, kind, value)
        secrets.append(value)
    value = f"hf_{random.getrandbits(160):040x}"
    secrets.append(value)
    with (run / "said.log").open("w") as log:
        for number in range(_ROWS):
            log.write(_LINE.format(name="HF_TOKEN", value=value, number=number))
    _database(run, value, random.choice(("delete", "persist", "wal")))
    return secrets


def _database(run: Path, value: str, journal: str) -> None:
    """One with a secret in many of its rows, as a writer leaves it that is killed after a write: a
    write-ahead log lies beside it.
    """
    made = run.parent / "made"
    made.mkdir()
    with closing(sqlite3.connect(made / "big.db", isolation_level=None)) as file:
        file.execute(f"PRAGMA journal_mode = {journal}")
        file.execute("CREATE TABLE anything (name TEXT, value TEXT, n INTEGER)")
        file.execute("BEGIN")
        for number in range(_ROWS):
            row = ("HF_TOKEN", value, number) if number % 7 == 0 else ("kernel", "x" * 200, number)
            file.execute("INSERT INTO anything VALUES (?, ?, ?)", row)
        file.execute("COMMIT")
        for path in made.iterdir():
            shutil.copy(path, run)
    shutil.rmtree(made)


def _start_and_kill(run: Path, random: Random) -> bool:
    """Whether the scrub still lived when the signal came."""
    victim = random.choice(sorted(path.name for path in run.iterdir()))
    wait_s = random.uniform(0, _LONGEST_S)
    process = started.python(
        [sys.executable, "-m", "profharness", "scrub", str(run)],
        ("profharness.secrets.scrub",),
        cwd=run.parent,
    )
    deadline = time.monotonic() + _WITHIN_S
    # its new content stands beside a file for as long as it is written
    while process.poll() is None and time.monotonic() < deadline:
        if any(path.name.startswith(f".{victim}.scrub-") for path in run.iterdir()):
            break
        time.sleep(_LOOK_S)
    end = time.monotonic() + wait_s
    while process.poll() is None and time.monotonic() < end:
        time.sleep(_LOOK_S)
    hit = process.poll() is None
    process.kill()
    process.communicate()
    return hit


def _finished(run: Path, new: dict[str, object], secrets: list[str]) -> list[str]:
    """Scrub again; what is not as if the first one had not been killed."""
    done = started.run("scrub", run)
    if done.returncode:
        return [f"the next scrub ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
    faults = [
        f"{name} is not clean after the next scrub"
        for name, content in _contents(run).items()
        if content != new.get(name)
    ]
    for path in run.iterdir():
        if path.name not in new:
            faults.append(f"{path.name} is left in the run")
        if any(secret.encode() in path.read_bytes() for secret in secrets):
            faults.append(f"{path.name} holds a secret after the next scrub")
    return faults


def _contents(run: Path) -> dict[str, object]:
    """What each file says: of a database its rows, which a recovery leaves as they are."""
    return {
        path.name: _content(path)
        for path in run.iterdir()
        if not path.name.startswith(".") and not path.name.endswith(("-wal", "-shm", "-journal"))
    }


def _content(path: Path) -> object:
    if path.suffix == ".db":
        # on a copy, since even reading would recover the file
        with_beside = [path.parent / f"{path.name}{suffix}" for suffix in ("", "-wal", "-journal")]
        place = path.parent.parent / "looked"
        place.mkdir()
        for file in with_beside:
            if file.exists():
                shutil.copy(file, place)
        try:
            with closing(sqlite3.connect(place / path.name)) as file:
                if file.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                    return "damaged"
                return tuple(file.iterdump())
        finally:
            shutil.rmtree(place)
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw
