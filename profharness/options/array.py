"""`--array 0-19`, `all%4`, `missing`: which tasks of a job array are meant, in sbatch's own form.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profharness.errors import UsageError

ALL = "all"
MISSING = "missing"
_NUMBER = "[0-9]{1,6}"
_PART = rf"{_NUMBER}(?:-{_NUMBER}(?::{_NUMBER})?)?"
_SPEC = re.compile(rf"({ALL}|{MISSING}|{_PART}(?:,{_PART})*)(%{_NUMBER})?")
_MOST = 100_000


def check(text: str) -> None:
    """Raises UsageError for what names no tasks."""
    if text and (not _SPEC.fullmatch(text) or numbers(text) == ()):
        raise UsageError(
            f"--array: {text!r} names no tasks of a job array",
            "write all, missing, or numbers as sbatch has them: 0-19, 3,7 or 0-19%4 (4 at a time)",
        )


def numbers(text: str) -> tuple[int, ...] | None:
    """The numbers that a text names, in order; None for `all` and `missing`. Raises UsageError for
    more than a scheduler takes.
    """
    spec = text.partition("%")[0]
    if spec in (ALL, MISSING):
        return None
    found: set[int] = set()
    for part in spec.split(","):
        span, _, step = part.partition(":")
        first, dash, last = span.partition("-")
        until = int(last) if dash else int(first)
        tasks = range(int(first), until + 1, int(step or 1) or 1)
        if len(tasks) > _MOST:
            raise UsageError(f"--array: {part} is too many tasks", f"name at most {_MOST}")
        found |= set(tasks)
    return tuple(sorted(found))


def spelled(tasks: Sequence[int], text: str) -> str:
    """The tasks as sbatch takes them, 0-3,7, with the `%4` of the text."""
    parts: list[list[int]] = []
    for task in sorted(tasks):
        if parts and parts[-1][-1] == task - 1:
            parts[-1].append(task)
        else:
            parts.append([task])
    runs = (f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in parts)
    _, percent, at_once = text.partition("%")
    return ",".join(runs) + percent + at_once
