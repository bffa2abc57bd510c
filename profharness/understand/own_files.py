"""Files of a run that are read one by one: what may not be read, or cannot, is a problem of the
run, and the others still count.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from profharness.errors import InputError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Found, Inside
from profharness.rundir.manifest import Artifact
from profharness.trace.model import Problem

ReadT = TypeVar("ReadT")


def each(
    inside: Inside,
    pattern: str,
    problems: list[Problem],
    read: Callable[[Path], ReadT],
    *,
    find: Callable[[Inside], Found] | None = None,
) -> Iterator[tuple[Path, ReadT]]:
    """What `read` makes of each file that a glob pattern finds in the run, or `find` in its stead,
    in order; it raises InputError, or anything, for a damaged one, which becomes one of the
    `problems`.
    """
    try:
        found = inside.found(pattern) if find is None else find(inside)
    except InputError as error:
        problems.append(Problem("error", pattern, 1, error.message))
        return
    problems += found.refused
    for path in found.paths:
        try:
            with reading(path):
                made = read(path)
        except InputError as error:
            problems.append(Problem("error", inside.named(path), 1, error.message))
        else:
            yield path, made


def sound(
    root: Path, artifacts: Sequence[Artifact]
) -> tuple[tuple[Artifact, ...], tuple[Problem, ...]]:
    """The tools' files of a run that may be read, and a problem for each other one: a record that
    names a file outside of the run, a link that leads there, a pipe, a file that is listed twice,
    whose records would count twice.
    """
    inside = Inside(root)
    kept: list[Artifact] = []
    times = Counter(os.path.normpath(artifact.path) for artifact in artifacts)
    refused = [
        Problem("warning", path, count - 1, "it is listed more than once, and was read once")
        for path, count in times.items()
        if count > 1
    ]
    seen: set[str] = set()
    for artifact in artifacts:
        path = os.path.normpath(artifact.path)
        if path in seen:
            continue
        seen.add(path)
        if why := inside.why_not_stated(artifact.path):
            refused.append(Problem("error", artifact.path, 1, why))
        else:
            kept.append(artifact)
    return tuple(kept), tuple(refused)


def present(
    root: Path, groups: Iterable[tuple[Artifact, ...]]
) -> tuple[tuple[tuple[Artifact, ...], ...], tuple[Problem, ...]]:
    """The groups of files with those that are there, and a problem for each other one: a record may
    name any number of files that are not, and looking for a reader of each would take long.
    """
    kept: list[tuple[Artifact, ...]] = []
    missing: list[Problem] = []
    for group in groups:
        there = []
        for artifact in group:
            path = f"{root}{os.sep}{os.path.normpath(artifact.path)}"
            if os.access(path, os.F_OK):
                there.append(artifact)
            else:
                missing.append(left_out(artifact, f"{path} does not exist"))
        if there:
            kept.append(tuple(there))
    return tuple(kept), tuple(missing)


def left_out(artifact: Artifact, why: str) -> Problem:
    """The problem that a tool's file could not be read."""
    return Problem("error", artifact.path, 1, f"{why}; the file is left out")
