"""The hotspot table of one or many loose files: each is read and grouped where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec

from profharness.analysis.kernels import counter_table
from profharness.analysis.kernels.counter_records import CounterRow
from profharness.analysis.kernels.facts import NO_YARDSTICK, KernelFacts, Yardstick
from profharness.analysis.kernels.hotspots import listed, tally
from profharness.analysis.kernels.tally import OF_FRAMES, Grouping, Tally, alike, join
from profharness.analysis.operators.coverage import misfits
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.records import Hotspots
from profharness.analysis.time.counts import pass_of
from profharness.findings import Finding
from profharness.node import ceilings as calibration
from profharness.trace.model import Problem
from profharness.trace.wanted import Wanted
from profharness.understand.load import load_files
from profharness.understand.many.jobs import (
    IN_ONE,
    FileGroup,
    Unread,
    Workers,
    check_files,
    file_groups,
    read_each,
)
from profharness.understand.replays import with_captures


@dataclass(frozen=True)
class GroupTally:
    """The table rows of one group of files, called `path`, and what its reader dropped or
    repaired. `pass_name` is the pass of a merged file that they are of.
    """

    path: str
    tally: Tally
    problems: tuple[Problem, ...]
    counters: tuple[CounterRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    pass_name: str | None = None


@dataclass(frozen=True)
class FilesHotspots:
    """One table of several files, the files that could not be read, the readers' problems, and
    findings on graph replays.
    """

    table: Hotspots
    unread: tuple[Unread, ...]
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...] = ()


def hotspots_of_files(
    paths: Sequence[Path],
    by: Grouping | None,
    *,
    ops: bool = False,
    shapes: bool = True,
    workers: Workers = IN_ONE,
    operator_input: OperatorInput = NO_INPUT,
) -> FilesHotspots:
    """Operators, calls and launch geometry are read only where `ops`, `by` or `shapes` need them.

    Raises InputError where no file can be read, UsageError for a run among them, and Unavailable
    for processes that keep dying.
    """
    check_files(paths)
    with workers.open(paths) as processes:
        # ceilings are this machine's: a process elsewhere may have a cache of its own
        yardstick = Yardstick(calibration.stored(), operator_input=operator_input)
        tallied = partial(tally_of, by=by, ops=ops, shapes=shapes, yardstick=yardstick)
        read = read_each(processes, tallied, file_groups(paths))
    tallies = alike([group.tally for group in read.results])
    table = (tallies[0] if len(tallies) == 1 else join(tallies)).table()
    passes = {group.pass_name for group in read.results}
    if len(passes) == 1:
        table = msgspec.structs.replace(table, pass_name=passes.pop())
    if table.by == "kernel":
        counters = counter_table.merge_counter_rows(group.counters for group in read.results)
        table = msgspec.structs.replace(table, counters=counters)
    problems = tuple(problem for group in read.results for problem in group.problems)
    findings = tuple(
        finding if len(paths) == 1 else _of_file(group.path, finding)
        for group in read.results
        for finding in group.findings
    )
    return FilesHotspots(table, tuple(read.unread), problems, findings)


def _of_file(path: str, finding: Finding) -> Finding:
    """The finding of one of several files, which names it."""
    message = f"{path.rpartition('/')[2]}: {finding.message}"
    return msgspec.structs.replace(finding, message=message)


def tally_of(
    group: FileGroup,
    by: Grouping | None,
    *,
    ops: bool,
    shapes: bool = True,
    yardstick: Yardstick = NO_YARDSTICK,
) -> GroupTally:
    """The table rows of one group of files. `by` None is by kernel, else by op, else by host call:
    by the first that the files hold.

    What the host did (operators, calls) is read only if `ops` or `by` asks for it or if it is all
    there is; without `shapes` the rows tell no launch geometry. Raises InputError for files that
    cannot be read.
    """
    operator_input = yardstick.operator_input
    captures = operator_input.captures
    wanted = _wanted(by, ops=ops or bool(captures), shapes=shapes)
    loaded = with_captures(load_files(group.paths, wanted=wanted, check=False), captures)
    trace = loaded.trace
    yardstick = replace(yardstick, counted=loaded.counted)
    facts = KernelFacts(trace, yardstick)
    rows = tally(trace, by, facts=facts)
    if by is None and not rows.filled:
        if not wanted.host:
            trace = load_files(group.paths, check=False).trace
        facts = KernelFacts(trace, yardstick)
        rows = listed(trace, facts)
    counters = counter_table.counter_rows(loaded.counted or trace)
    findings = (*loaded.findings, *(misfits(facts) if operator_input.formulas else ()))
    return GroupTally(group.path, rows, trace.problems, counters, findings, pass_of(trace))


def _wanted(by: Grouping | None, *, ops: bool, shapes: bool) -> Wanted:
    """What has to be read, if the files hold device records at all."""
    if by in OF_FRAMES:
        return Wanted.STACKS
    if ops or by in ("op", "shape", "range", "call"):
        return Wanted.ALL
    return Wanted.DEVICES if shapes and by != "category" else Wanted.TIMES
