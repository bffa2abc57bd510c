"""The hotspot table of one or many loose files: each is read and grouped where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.analysis.kernels import counter_table
from profharness.analysis.kernels.counter_records import CounterRow
from profharness.analysis.kernels.hotspots import listed, tally
from profharness.analysis.kernels.tally import Grouping, Tally, alike, join
from profharness.analysis.records import Hotspots
from profharness.errors import InputError
from profharness.trace.model import Problem
from profharness.trace.wanted import Wanted
from profharness.understand.load import load_files
from profharness.understand.many.jobs import (
    IN_ONE,
    Files,
    Unread,
    Workers,
    check_files,
    grouped,
    read_each,
)


@dataclass(frozen=True)
class TallyJob:
    """Files to be grouped; `by` None is by kernel, else by op, else by host call: by the first that
    they hold.

    Without `shapes` the rows tell no launch geometry.
    """

    files: Files
    by: Grouping | None
    ops: bool
    shapes: bool = True

    @property
    def path(self) -> str:
        """What they are called."""
        return self.files.path

    @property
    def wanted(self) -> Wanted:
        """What has to be read, if the files hold device records at all."""
        if self.ops or self.by in ("op", "call"):
            return Wanted.ALL
        return Wanted.DEVICES if self.shapes and self.by != "category" else Wanted.TIMES


@dataclass(frozen=True)
class Tallied:
    """The groups of one job, and what its reader dropped or repaired."""

    tally: Tally
    problems: tuple[Problem, ...]
    counters: tuple[CounterRow, ...] = ()


def hotspots_of_files(
    paths: Sequence[Path],
    by: Grouping | None,
    *,
    ops: bool = False,
    shapes: bool = True,
    workers: Workers = IN_ONE,
) -> tuple[Hotspots, tuple[Unread, ...], tuple[Problem, ...]]:
    """One table, the files that could not be read, and the readers' problems. Operators, calls and
    geometry are read only where they are needed.

    Raises InputError where no file can be read, UsageError for a run among them, and Unavailable
    for processes that keep dying.
    """
    check_files(paths)
    with workers.open(paths) as processes:
        read, unread = read_each(
            processes, tally_of, [TallyJob(files, by, ops, shapes) for files in grouped(paths)]
        )
    same = alike([one.tally for one in read])
    table = (same[0] if len(same) == 1 else join(same)).table()
    if table.by == "kernel":
        table = msgspec.structs.replace(
            table, counters=counter_table.joined(one.counters for one in read)
        )
    return table, tuple(unread), tuple(problem for one in read for problem in one.problems)


def tally_of(job: TallyJob) -> Tallied | Unread:
    """The groups of one job, read with what the host did (operators, calls) only if that is asked
    for or all there is.
    """
    try:
        trace = load_files(job.files.paths, wanted=job.wanted, check=False).trace
        found = tally(trace, job.by)
        if job.by is None and not found.filled:
            trace = (
                trace
                if job.wanted is Wanted.ALL
                else load_files(job.files.paths, check=False).trace
            )
            found = listed(trace)
    except InputError as error:
        return Unread(job.files.paths[0], error.message, error.hint)
    return Tallied(found, trace.problems, counter_table.counter_rows(trace))
