"""The summary of whatever the user names: one run or file, or several files as ranks of one job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.trace.wanted import Wanted
from profharness.understand import report_run
from profharness.understand.load import Loaded, check_paths, load, load_files, told
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.kernels.facts import KernelFacts
    from profharness.analysis.records import Summary
    from profharness.understand.many.jobs import Workers


def summarise_paths(
    paths: Sequence[Path],
    step_range: str = "",
    operator_input: OperatorInput = NO_INPUT,
    workers: Workers | None = None,
    *,
    for_page: bool = False,
) -> Summary:
    """The figures of one run or file, or of several files, each on its own clock, as ranks of one
    job. `for_page` adds what pages alone show: how well the devices were used, and pictures.

    Raises what `load` and `summarise_files` raise: UsageError for paths that do not go together,
    InputError for what cannot be read.
    """
    check_paths(paths)
    if len(paths) > 1 or (workers is not None and workers.dask is not None):
        from profharness.understand.device_use import use_of
        from profharness.understand.many.figures import summarise_files
        from profharness.understand.many.jobs import IN_ONE, file_groups

        several = len(file_groups(paths)) > 1
        summary = summarise_files(
            paths, workers or IN_ONE, step_range, operator_input, for_page=for_page and several
        )
        if several or not for_page:
            return summary
        # the tables of one process: one trace, which is read again for what the page alone shows
        shown = load_files(paths, wanted=Wanted.SHOWN)
        of_page = _Shown(shown, step_range, operator_input)
        use = use_of(of_page.figures, operator_input)
        return _with_page(msgspec.structs.replace(summary, use=use), of_page)
    if not for_page:
        shown = told(load(paths, wanted=Wanted.SHOWN))
        loaded = with_captures(shown, operator_input.captures)
        return report_run.summarise(loaded, step_range, operator_input)
    from profharness.understand.device_use import use_of

    of_page = _Shown(load(paths, wanted=Wanted.SHOWN), step_range, operator_input)
    facts = of_page.facts
    summary = report_run.summarise(of_page.figures, step_range, operator_input, facts)
    use = use_of(of_page.figures, operator_input, facts)
    del facts  # what is known of each kernel takes memory that the pictures need
    return _with_page(msgspec.structs.replace(summary, use=use), of_page)


@dataclass(frozen=True)
class _Shown:
    """What was loaded for a page, with Python's functions and modules, and what its figures are
    asked with.
    """

    loaded: Loaded
    step_range: str
    operator_input: OperatorInput

    @cached_property
    def figures(self) -> Loaded:
        """What figures are made of: the same without these functions and modules."""
        return with_captures(told(self.loaded), self.operator_input.captures)

    @property
    def facts(self) -> KernelFacts | None:
        """What the figures and the use of the devices need of each kernel; of loose files alone."""
        if self.figures.manifest is not None:
            return None
        from profharness.understand.device_use import facts_of

        return facts_of(self.figures, self.operator_input)


def _with_page(summary: Summary, shown: _Shown) -> Summary:
    """The summary with the pictures and the critical path."""
    from profharness.understand.loose.critical import shown_path
    from profharness.understand.pictures import pictures_of

    loaded = shown.figures
    return msgspec.structs.replace(
        summary,
        pictures=pictures_of(loaded, summary, shown.step_range, shown.loaded.trace),
        critical_path=shown_path(loaded, shown.loaded.trace, shown.step_range),
    )
