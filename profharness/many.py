"""The figures of many loose files: each is read and summarised in a process of its own, where the data is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from profharness.analysis import parts
from profharness.analysis.parts import Part
from profharness.analysis.records import ProblemRow, Summary
from profharness.errors import InputError
from profharness.jobs import IN_ONE, Files, Unread, Workers, check_files, grouped, read_each
from profharness.loading import load_files


def summarise_files(paths: Sequence[Path], workers: Workers = IN_ONE) -> Summary:
    """One summary of several loose files. Files that cannot be read are named among its problems.

    Raises InputError where none can be read, UsageError for a run among them, and Unavailable for processes that keep dying.
    """
    check_files(paths)
    with workers.open(paths) as processes:
        jobs = grouped(paths)
        read, unread = read_each(processes, part_of, jobs)
        shared = _sharing(read, jobs)
        if shared:
            again, lost = read_each(processes, part_of, shared)
            alone = {str(path) for files in shared for path in files.paths}
            read = [*(one for one in read if one.summary.source.split(", ")[0] not in alone), *again]
            unread += lost
    summary = parts.combine(read, f"{len(paths)} files: {paths[0]} ... {paths[-1]}" if len(jobs) > 1 else jobs[0].path)
    rows = [ProblemRow(source=str(one.path), severity="error", count=1, message=f"{one.message}; the file is left out") for one in unread]
    return msgspec.structs.replace(summary, problems=(*rows, *summary.problems))


def part_of(files: Files) -> Part | Unread:
    """The summary of one job."""
    try:
        loaded = load_files(files.paths)
    except InputError as error:
        return Unread(files.paths[0], error.message, error.hint)
    return parts.part(loaded.trace, files.path, loaded.findings)


def _sharing(read: Sequence[Part], jobs: Sequence[Files]) -> list[Files]:
    """Groups of files that saw the same device: their device time overlaps, so that their unions cannot be added."""
    return [Files(tuple(path for files in jobs if files.path in sources for path in files.paths))
            for sources in linked([(one.summary.source, one.identities) for one in read]) if len(sources) > 1]


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
