"""The figures of many loose files: each is read and summarised in a process of its own, where the
data is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from profharness.analysis import parts
from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.parts import Part
from profharness.analysis.pictures.of_files import pieces_of_one
from profharness.analysis.records import ProblemRow, Summary
from profharness.errors import UsageError
from profharness.node import ceilings as calibration
from profharness.trace.wanted import Wanted
from profharness.understand.host_frames import told_by_frames
from profharness.understand.load import load_files, told
from profharness.understand.many.jobs import (
    IN_ONE,
    FileGroup,
    Readings,
    Workers,
    check_files,
    file_groups,
    read_each,
)
from profharness.understand.pictures import pictures_of_one
from profharness.understand.replays import with_captures
from profharness.understand.steps import stepped


def summarise_files(
    paths: Sequence[Path],
    workers: Workers = IN_ONE,
    step_range: str = "",
    operator_input: OperatorInput = NO_INPUT,
    *,
    for_page: bool = False,
) -> Summary:
    """One summary of several loose files. Files that cannot be read are named among its problems.

    `step_range` is as for `steps.stepped`; files in which no range matches have a finding.
    `for_page` adds how well the devices of all files together were used, and pictures.
    Raises InputError where none can be read, UsageError for a run among them and where no file has
    such a range, and Unavailable for processes that keep dying.
    """
    check_files(paths)
    yardstick = Yardstick(calibration.stored(), operator_input=operator_input)
    groups = file_groups(paths)
    pieces = pieces_of_one(len(groups)) if for_page else None
    summarised = partial(part_of, yardstick=yardstick, step_range=step_range, pieces=pieces)
    with workers.open(paths) as processes:
        read = read_each(processes, summarised, groups)
        shared = _sharing(read.results, groups)
        if shared:
            read = _again(read, read_each(processes, summarised, shared), shared)
    _check_matched(read.results, step_range)
    summary = parts.combine(
        read.results,
        f"{len(paths)} files: {paths[0]} ... {paths[-1]}" if len(groups) > 1 else groups[0].path,
    )
    problems = [
        ProblemRow(
            source=problem.source,
            severity=problem.severity,
            count=problem.count,
            message=problem.message,
        )
        for problem in (file.problem for file in read.unread)
    ]
    return msgspec.structs.replace(
        summary, steps_from=_steps_from(read.results), problems=(*problems, *summary.problems)
    )


def part_of(
    group: FileGroup, yardstick: Yardstick, step_range: str = "", *, pieces: int | None = None
) -> Part:
    """The summary of one group of files, against what is known of their devices and operators.
    `pieces` adds what pages alone show: how well the devices were used, and pictures, with strips
    of at most so many pieces.

    Raises InputError for files that cannot be read.
    """
    captures, for_page = yardstick.operator_input.captures, pieces is not None
    read = load_files(group.paths, wanted=Wanted.SHOWN)
    shown = read.trace
    loaded = stepped(with_captures(told(read), captures), step_range, must=False)
    yardstick = replace(yardstick, counted=loaded.counted)
    part = parts.part(loaded.trace, group.path, loaded.findings, yardstick, with_use=for_page)
    of_part = told_by_frames(part.summary, loaded)
    summary = msgspec.structs.replace(of_part, steps_from=loaded.steps_from)
    if pieces is None:
        return replace(part, summary=summary)
    partitioned = summary.partition is not None
    pictures = pictures_of_one(loaded, shown, pieces, partitioned=partitioned)
    return replace(part, summary=summary, pictures=pictures)


def _again(first: Readings[Part], again: Readings[Part], shared: list[FileGroup]) -> Readings[Part]:
    """The first reading, with files that share a device as they were read `again`: as one group."""
    regrouped = {str(path) for group in shared for path in group.paths}
    kept = [part for part in first.results if part.summary.source.split(", ")[0] not in regrouped]
    return Readings([*kept, *again.results], [*first.unread, *again.unread])


def _steps_from(read: Sequence[Part]) -> str:
    """What says which ranges are steps: each sentence of the parts once."""
    return "; ".join(
        dict.fromkeys(part.summary.steps_from for part in read if part.summary.steps_from)
    )


def _check_matched(read: Sequence[Part], step_range: str) -> None:
    """Raises UsageError, with what the first file holds, where no file has a range that matches."""
    lacking = [
        item.message
        for part in read
        for item in part.summary.findings
        if item.id == "step-range-unmatched"
    ]
    if step_range and lacking and len(lacking) == len(read):
        message, _, hint = lacking[0].partition("; ")
        raise UsageError(message, hint)


def _sharing(read: Sequence[Part], groups: Sequence[FileGroup]) -> list[FileGroup]:
    """Groups of files that saw the same device: their device time overlaps, so that their unions
    cannot be added.
    """
    return [
        FileGroup(tuple(path for group in groups if group.path in sources for path in group.paths))
        for sources in linked([(part.summary.source, part.identities) for part in read])
        if len(sources) > 1
    ]


def linked(named: Sequence[tuple[str, frozenset[tuple[str, str]]]]) -> Iterator[set[str]]:
    """Names that share something, directly or through others."""
    groups: list[tuple[set[str], set[tuple[str, str]]]] = []
    for name, things in named:
        names, all_things = {name}, set(things)
        apart = []
        for group in groups:
            if group[1] & all_things:
                names |= group[0]
                all_things |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (names, all_things)]
    yield from (names for names, _ in groups)
