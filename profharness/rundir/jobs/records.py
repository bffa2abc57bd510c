"""What a batch job leaves beside its run: which run it makes, and how it ended.

In the folder of the runs, `slurm/` holds for each job `<id>.sh` (the script), `<id>.log` (what it
printed), `<id>.json` (a `Submitted`) and at its end `<id>.end` (a `JobEnd`), which also lies in the
run as `job.json`. Each file has one writer, and is moved to its name when it is whole, so that a
network file system needs no locks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.small_files import read_file

JOBS = "slurm"
END = "job.json"
Cause = Literal["", "time-limit", "cancelled", "node-lost"]
_MOST_BYTES = 64 << 10
R = TypeVar("R", bound=msgspec.Struct)
_CAUSES = {
    "time-limit": "came to the end of its time",
    "cancelled": "was cancelled",
    "node-lost": "ended because a node failed",
}
_Short = Annotated[str, msgspec.Meta(max_length=4096)]


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was submitted: its number, the run that it makes, its log, when (UTC). Of an array
    `run` is the folder of all tasks, and `tasks` are those that were submitted.
    """

    job: _Short
    run: _Short
    log: _Short
    submitted: _Short = ""
    tasks: tuple[int, ...] = ()


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended. `cause` is empty where its command ended by itself; `nodes` is the list of
    its nodes as Slurm writes it, `lost` those of them that failed, with commas between.
    """

    job: _Short = ""
    cause: Cause = ""
    exit_status: int = 0
    nodes: _Short = ""
    lost: _Short = ""

    @property
    def in_words(self) -> str:
        """What ended it before its work was done, for behind `job 7`; empty where nothing did."""
        if self.cause == "node-lost" and self.lost:
            several = "s" if "," in self.lost else ""
            return f"ended because node{several} {self.lost.replace(',', ', ')} failed"
        return _CAUSES.get(self.cause, "")


def read_end(path: Path) -> JobEnd | None:
    """None where the job left none. Raises InputError for a file that is damaged."""
    return _read(path, JobEnd)


def end_of_run(root: Path) -> JobEnd | None:
    """How the job of a run ended; None where it was no job's, or goes on. Raises InputError for a
    file that is damaged, or lies elsewhere.
    """
    path = root / END
    return read_end(Inside(root).require(path)) if os.path.lexists(path) else None


def read_submitted(path: Path) -> Submitted | None:
    """None where there is none. Raises InputError for a file that is damaged."""
    return _read(path, Submitted)


def _read(path: Path, kind: type[R]) -> R | None:
    with reading(path):
        try:
            data = read_file(path, _MOST_BYTES)
        except FileNotFoundError:
            return None
        return msgspec.json.decode(data, type=kind)


def find(where: str, runs: Path) -> Submitted:
    """The job of that number, or that makes that run. Raises InputError where none is known."""
    root = Path(where).absolute()
    if where.isdecimal():
        found = read_submitted(runs / JOBS / f"{where}.json")
        if found is not None:
            return found
    records = sorted((root.parent / JOBS).glob("*.json"))
    for path in reversed(records):
        found = read_submitted(path)
        if found is not None and Path(found.run) == root:
            return found
    raise InputError(
        f"{where}: no job is known that makes this run",
        f"name a run, or the number of a job of which {runs / JOBS} has a file",
    )
