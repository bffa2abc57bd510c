"""Critical paths of what the user names: a run's points, a file, or several files as ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.critical.changes import Change
from profharness.analysis.critical.records import CriticalPath
from profharness.analysis.critical.summary import together
from profharness.trace.wanted import Wanted
from profharness.understand import report_run
from profharness.understand.load import load, told
from profharness.understand.loose.critical import path_of
from profharness.understand.loose.summaries import summarise_paths
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.analysis.records import Summary
    from profharness.understand.many.jobs import Workers


def summary_with_path(
    paths: Sequence[Path],
    changes: Sequence[Change],
    step_range: str,
    operator_input: OperatorInput,
    workers: Workers | None,
) -> tuple[Summary, CriticalPath | None]:
    """The figures as `summarise_paths` gives them, and the critical path with what each change is
    worth. One path is read once; of several files, each is read again by itself.
    """
    if len(paths) > 1 or workers is not None:
        summary = summarise_paths(paths, step_range, operator_input, workers)
        each = [path_of(load([path], wanted=Wanted.SHOWN), changes, step_range) for path in paths]
        return summary, together([found for found in each if found is not None])
    shown = load(paths, wanted=Wanted.SHOWN)
    figures = with_captures(told(shown), operator_input.captures)
    summary = report_run.summarise(figures, step_range, operator_input)
    return summary, path_of(shown, changes, step_range)
