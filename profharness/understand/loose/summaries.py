"""The summary of whatever the user names: one run or file, or several files as ranks of one job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.understand import report_run
from profharness.understand.load import Loaded, check_paths, load, load_files
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.records import Summary
    from profharness.understand.many.jobs import Workers


def summarise_paths(
    paths: Sequence[Path],
    step_range: str = "",
    operator_input: OperatorInput = NO_INPUT,
    workers: Workers | None = None,
    *,
    with_use: bool = False,
) -> Summary:
    """The figures of one run or file, or of several files, each on its own clock, as ranks of one
    job. `with_use` adds how well the devices of a single one (or of the tables of one process) were
    used, as pages and plots show it.

    Raises what `load` and `summarise_files` raise: UsageError for paths that do not go together,
    InputError for what cannot be read.
    """
    check_paths(paths)
    if len(paths) > 1 or (workers is not None and workers.dask is not None):
        from profharness.understand.many.figures import summarise_files
        from profharness.understand.many.jobs import IN_ONE, file_groups

        summary = summarise_files(paths, workers or IN_ONE, step_range, operator_input)
        if not with_use or len(file_groups(paths)) > 1:
            return summary
        # the tables of one process: one trace, which is read again for what the page alone shows
        loaded = with_captures(load_files(paths), operator_input.captures)
        return _with_use(summary, loaded, operator_input)
    loaded = with_captures(load(paths), operator_input.captures)
    summary = report_run.summarise(loaded, step_range, operator_input)
    if not with_use:
        return summary
    return _with_use(summary, loaded, operator_input)


def _with_use(summary: Summary, loaded: Loaded, operator_input: OperatorInput) -> Summary:
    from profharness.understand.device_use import use_of

    return msgspec.structs.replace(summary, use=use_of(loaded, operator_input))
