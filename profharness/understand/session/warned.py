"""What a reader lost or repaired, as warnings of Python's at the line that asked."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profharness.findings import problem_text

if TYPE_CHECKING:
    from profharness.analysis.records import ProblemRow
    from profharness.trace.model import Problem

_OURS = ("profharness", "functools")
"""Packages whose lines are none of the user's; a cached property is called by functools."""


def warn(problems: Sequence[Problem | ProblemRow]) -> None:
    """One warning for each problem that is more than a note of a reader."""
    serious = [one for one in problems if one.severity != "info"]
    if not serious:
        return
    level = _lines_of_ours()
    for one in serious:
        warnings.warn(problem_text(one.source, one.count, one.message), stacklevel=level)


def _lines_of_ours() -> int:
    """The level at which `warn` finds the line that called this package."""
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame = frame.f_back
        level += 1
    return level
