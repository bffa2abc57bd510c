"""Critical paths of what the user names: a run's points, a file, or several files as ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.critical.changes import Change
from profharness.analysis.critical.records import CriticalPath
from profharness.analysis.critical.summary import critical_path, together
from profharness.trace.wanted import Wanted
from profharness.understand import report_run
from profharness.understand.load import load, told
from profharness.understand.loose.critical import path_of, records_to_walk
from profharness.understand.loose.summaries import summarise_paths
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.analysis.records import Summary
    from profharness.understand.many.jobs import Workers


MOST_BYTES = 2 << 30
"""Files of more text than this are not held in memory together."""
_GZIP = 15  # times as large as text: traces hold few distinct words


def _of_several(
    paths: Sequence[Path], changes: Sequence[Change], step_range: str
) -> CriticalPath | None:
    """The paths of several files, which meet at the collectives that they have in common; each by
    itself where runs are among them, or all do not fit in memory at once.
    """
    if any(path.is_dir() for path in paths) or _text_bytes(paths) > MOST_BYTES:
        each = (path_of(load([path], wanted=Wanted.SHOWN), changes, step_range) for path in paths)
        return together([found for found in each if found is not None])
    loaded = (load([path], wanted=Wanted.SHOWN) for path in paths)
    return critical_path([records_to_walk(one, step_range) for one in loaded], changes)


def _text_bytes(paths: Sequence[Path]) -> int:
    """About how large the files are as text."""
    return sum(
        path.stat().st_size * (_GZIP if path.suffix == ".gz" else 1)
        for path in paths
        if path.is_file()
    )


def summary_with_path(
    paths: Sequence[Path],
    changes: Sequence[Change],
    step_range: str,
    operator_input: OperatorInput,
    workers: Workers | None,
) -> tuple[Summary, CriticalPath | None]:
    """The figures as `summarise_paths` gives them, and the critical path with what each change is
    worth. One path is read once; several files are read again for their paths.
    """
    if len(paths) > 1 or workers is not None:
        summary = summarise_paths(paths, step_range, operator_input, workers)
        return summary, _of_several(paths, changes, step_range)
    shown = load(paths, wanted=Wanted.SHOWN)
    figures = with_captures(told(shown), operator_input.captures)
    summary = report_run.summarise(figures, step_range, operator_input)
    return summary, path_of(shown, changes, step_range)
