"""Critical paths of what the user names: a run's points, a file, or several files as ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.critical.changes import Change
from profharness.analysis.critical.records import CriticalPath, Forecast, RankPath
from profharness.analysis.critical.summary import critical_path, together
from profharness.trace.parts.select import without_frames
from profharness.trace.wanted import Wanted
from profharness.understand import report_run
from profharness.understand.hotspots import records_of
from profharness.understand.load import Loaded, load
from profharness.understand.loose.summaries import summarise_paths
from profharness.understand.replays import with_captures
from profharness.understand.steps import stepped

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
    plain = replace(shown, trace=without_frames(shown.trace))
    figures = with_captures(plain, operator_input.captures)
    summary = report_run.summarise(figures, step_range, operator_input)
    return summary, path_of(shown, changes, step_range)


def path_of(
    loaded: Loaded, changes: Sequence[Change] = (), step_range: str = ""
) -> CriticalPath | None:
    """The paths of the pass that speaks for kernels; None where it recorded nothing of the host. A
    forecast of a batch size that another point measured stands beside what was measured.
    """
    loaded = stepped(loaded, step_range, must=False)
    _, trace = records_of(loaded)
    batches = _batch_sizes(loaded)
    found = critical_path(trace, changes, batches)
    if found is None or not any(change.batch for change in changes):
        return found
    return msgspec.structs.replace(
        found,
        processes=tuple(_against(path, found, changes, batches) for path in found.processes),
    )


def _batch_sizes(loaded: Loaded) -> dict[str, int]:
    """The batch size of each point of a run, by the point's name."""
    manifest = loaded.manifest
    if manifest is None:
        return {}
    return {point.id: point.batch_size for point in manifest.points if point.batch_size is not None}


def _against(
    path: RankPath, found: CriticalPath, changes: Sequence[Change], batches: dict[str, int]
) -> RankPath:
    """The path with its forecasts of batch sizes beside what the points of these sizes took."""
    sizes = {change.text: change.batch for change in changes if change.batch is not None}
    measured = {
        batches[other.point]: other.step_ns
        for other in found.processes
        if other.point in batches and other.rank == path.rank and other.step_ns
    }
    return msgspec.structs.replace(
        path,
        what_if=tuple(
            _compared(made, measured.get(sizes.get(made.change) or 0)) for made in path.what_if
        ),
    )


def _compared(made: Forecast, measured_step_ns: float | None) -> Forecast:
    if measured_step_ns is None or not made.steps:
        return made
    measured = measured_step_ns * made.steps
    return msgspec.structs.replace(
        made, measured_ns=measured, error=made.forecast_ns / measured - 1
    )
