"""One of two that are compared: a run, a trace file, or the CSV of a scan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profharness.analysis.curves.records import Series
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.records import Summary
from profharness.rundir.paths import MANIFEST
from profharness.understand.load import check_paths
from profharness.understand.loose.scans import is_scan, read_scan
from profharness.understand.loose.summaries import summarise_paths


@dataclass(frozen=True)
class Side:
    """A side with its figures; `series` are the curves of a CSV, and None of all else."""

    path: Path
    summary: Summary
    series: tuple[Series, ...] | None = None

    @property
    def is_run(self) -> bool:
        """Whether it is a run directory."""
        return (self.path / MANIFEST).is_file()


def read_side(path: Path, step_range: str = "", operator_input: OperatorInput = NO_INPUT) -> Side:
    """Read what was named. Raises InputError for what cannot be read."""
    check_paths([path])
    if is_scan([path]):
        scan = read_scan(path)
        return Side(path, scan.summary, scan.series)
    return Side(path, summarise_paths([path], step_range, operator_input))
