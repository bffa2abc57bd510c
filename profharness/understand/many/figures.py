"""The figures of many loose files: each is read and summarised in a process of its own, where the
data is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from profharness.analysis import parts
from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.parts import Part
from profharness.analysis.records import ProblemRow, Summary
from profharness.errors import InputError, UsageError
from profharness.node import ceilings as calibration
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
from profharness.understand.steps import stepped


def summarise_files(
    paths: Sequence[Path], workers: Workers = IN_ONE, step_range: str = ""
) -> Summary:
    """One summary of several loose files. Files that cannot be read are named among its problems.

    `step_range` is as for `stepping.stepped`; files in which no range matches have a finding.
    Raises InputError where none can be read, UsageError for a run among them and where no file has
    such a range, and Unavailable for processes that keep dying.
    """
    check_files(paths)
    with workers.open(paths) as processes:
        jobs = grouped(paths)
        yardstick = Yardstick(calibration.stored())
        read, unread = read_each(
            processes, part_of, [PartJob(files, yardstick, step_range) for files in jobs]
        )
        shared = _sharing(read, jobs)
        if shared:
            again, lost = read_each(
                processes, part_of, [PartJob(files, yardstick, step_range) for files in shared]
            )
            alone = {str(path) for files in shared for path in files.paths}
            read = [
                *(one for one in read if one.summary.source.split(", ")[0] not in alone),
                *again,
            ]
            unread += lost
    _check_matched(read, step_range)
    summary = parts.combine(
        read, f"{len(paths)} files: {paths[0]} ... {paths[-1]}" if len(jobs) > 1 else jobs[0].path
    )
    rows = [
        ProblemRow(
            source=str(one.path),
            severity="error",
            count=1,
            message=f"{one.message}; the file is left out",
        )
        for one in unread
    ]
    told = "; ".join(
        dict.fromkeys(one.summary.steps_from for one in read if one.summary.steps_from)
    )
    return msgspec.structs.replace(summary, steps_from=told, problems=(*rows, *summary.problems))


@dataclass(frozen=True, eq=False)
class PartJob:
    """Files to be summarised, against what this machine knows of their devices, with these ranges
    as their steps.
    """

    files: Files
    yardstick: Yardstick
    step_range: str = ""

    @property
    def path(self) -> str:
        """What they are called."""
        return self.files.path


def part_of(job: PartJob) -> Part | Unread:
    """The summary of one job."""
    try:
        loaded = stepped(load_files(job.files.paths), job.step_range, must=False)
    except InputError as error:
        return Unread(job.files.paths[0], error.message, error.hint)
    found = parts.part(loaded.trace, job.files.path, loaded.findings, job.yardstick)
    return replace(
        found, summary=msgspec.structs.replace(found.summary, steps_from=loaded.steps_from)
    )


def _check_matched(read: Sequence[Part], step_range: str) -> None:
    """Raises UsageError, with what the first file holds, where no file has a range that matches."""
    lacking = [
        item.message
        for one in read
        for item in one.summary.findings
        if item.id == "step-range-unmatched"
    ]
    if step_range and lacking and len(lacking) == len(read):
        message, _, hint = lacking[0].partition("; ")
        raise UsageError(message, hint)


def _sharing(read: Sequence[Part], jobs: Sequence[Files]) -> list[Files]:
    """Groups of files that saw the same device: their device time overlaps, so that their unions
    cannot be added.
    """
    return [
        Files(tuple(path for files in jobs if files.path in sources for path in files.paths))
        for sources in linked([(one.summary.source, one.identities) for one in read])
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
