"""The tables of hotspots of what a user named, as `hotspots` works them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from profharness.analysis.code.records import By as CodeBy
from profharness.analysis.kernels.tally import Grouping
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.errors import UsageError
from profharness.understand.many.jobs import Workers

if TYPE_CHECKING:
    from profharness.analysis.records import Hotspots, ProblemRow
    from profharness.report.table import Table
    from profharness.trace.model import Problem

CODE_ROWS = get_args(CodeBy)
SEQUENCE = "sequence"
MEMORY = "memory"
ROWS = (*get_args(Grouping), *CODE_ROWS, SEQUENCE, MEMORY)
"""All that rows of hotspots can stand for; the last ones are no rows of records."""


@dataclass(frozen=True)
class Asked:
    """Which hotspots: rows `by` (None: the first kind that is there), of a pass of a run."""

    by: str | None = None
    pass_name: str | None = None

    def check(self, *, of_run: bool) -> None:
        """Raises UsageError for rows that do not exist, and for a pass of loose files."""
        if self.by not in (None, *ROWS):
            raise UsageError(f"by {self.by!r}: no such rows", f"one of {', '.join(ROWS)}")
        if self.pass_name is not None and not of_run:
            raise UsageError(f"{self.pass_name}: no such pass", "loose files have no passes")


@dataclass(frozen=True)
class Listing:
    """A table of hotspots for programs, what stands beside its rows, and what its readers lost or
    repaired. Times are in ns.
    """

    table: Table
    by: str
    pass_name: str | None
    total_ns: float | None
    device_ns_outside: int | None
    problems: tuple[Problem | ProblemRow, ...]


def listing_of(
    paths: Sequence[Path], asked: Asked, operator_input: OperatorInput = NO_INPUT
) -> Listing:
    """What `hotspots` lists of one run, or of files, whose records count together.

    Raises UsageError for rows or a pass that do not exist, and as `hotspots_of_files` does.
    """
    from profharness.understand.hotspots import hotspots_of, load_for
    from profharness.understand.many.tables import hotspots_of_files
    from profharness.understand.replays import with_captures

    of_run = len(paths) == 1 and paths[0].is_dir()
    asked.check(of_run=of_run)
    if asked.by in CODE_ROWS:
        return _code(paths, asked, of_run=of_run)
    if asked.by == SEQUENCE:
        return _sequences(paths, asked, operator_input)
    if asked.by == MEMORY:
        return _memory(paths, asked)
    by = cast("Grouping | None", asked.by)
    if of_run:
        loaded = with_captures(load_for(paths, by), operator_input.captures)
        table = hotspots_of(loaded, by, asked.pass_name, operator_input=operator_input)
        return _listing(table, loaded.trace.problems)
    of_files = hotspots_of_files(paths, by, workers=Workers(1), operator_input=operator_input)
    problems = (*(one.problem for one in of_files.unread), *of_files.problems)
    return _listing(of_files.table, problems)


def _listing(table: Hotspots, problems: Sequence[Problem]) -> Listing:
    from profharness.report.tables.hotspots import hotspot_values

    return Listing(
        hotspot_values(table),
        table.by,
        table.pass_name,
        table.total_ns,
        table.device_ns_outside,
        tuple(problems),
    )


def _code(paths: Sequence[Path], asked: Asked, *, of_run: bool) -> Listing:
    """Lines or instructions of kernels, which have samples and no times."""
    from profharness.report.tables.code_spots import code_values
    from profharness.understand import code_spots

    by = cast("CodeBy", asked.by)
    found = (
        code_spots.of_run(paths[0], by, asked.pass_name)
        if of_run
        else code_spots.of_files(paths, by)
    )
    table = found.table
    return Listing(code_values(table), by, asked.pass_name, None, None, tuple(found.problems))


def _sequences(paths: Sequence[Path], asked: Asked, operator_input: OperatorInput) -> Listing:
    """Recurring sequences of short kernels; `total_ns` is the time of all kernels."""
    from profharness.report.sequences.tables import sequence_table
    from profharness.understand.loose.sequences import sequences_of

    if len(paths) > 1:
        raise UsageError("rows by sequence are of one run or file", "name one")
    table, loaded = sequences_of(paths[0], asked.pass_name, operator_input)
    rows = sequence_table(table, len(table.rows))
    problems = tuple(loaded.trace.problems)
    return Listing(rows, SEQUENCE, table.pass_name, table.kernel_ns, None, problems)


def _memory(paths: Sequence[Path], asked: Asked) -> Listing:
    """Who held memory, which has no time."""
    from profharness.report.tables.memory.owners import owners_table
    from profharness.understand.loose.memory_owners import owners_of

    if len(paths) > 1:
        raise UsageError("rows by memory are of one run or file", "name one")
    table, loaded = owners_of(paths[0], asked.pass_name)
    rows = owners_table(table, len(table.rows))
    return Listing(rows, MEMORY, table.pass_name, None, None, tuple(loaded.trace.problems))
