"""The CSV of a scan as an object: its points with their figures, and no records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import InputError
from profharness.report.frame import frame_of
from profharness.rundir.shown.screen import one_line
from profharness.understand.session.recording import Recording
from profharness.understand.session.tables import Records

if TYPE_CHECKING:
    from profharness.analysis.records import Summary


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Recording):
    """A table of throughput over batch size, concurrency or processes (docs/formats.md#scan-csv).

    It has points, figures, plots and comparisons; what needs records, such as `hotspots` and
    `trace`, raises InputError.
    """

    @cached_property
    def summary(self) -> Summary:
        """The points with their figures: throughput with its 95 % interval where the
        table has standard errors, mean latency in ms.
        """
        from profharness.understand.loose.scans import read_scan

        return read_scan(self.paths[0]).summary

    @property
    def points(self) -> Records:
        """One row per row of the table: what it was measured at, `throughput` in items/s with the
        ends `_low` and `_high` of its 95 % interval, `latency_mean` in ms.
        """
        from profharness.report.tables.results import point_values

        table = point_values(self.summary)
        return Records("points", len(table.rows), lambda: frame_of(table))

    @property
    def _readable(self) -> tuple[Path, ...]:
        raise InputError(
            f"{one_line(str(self.paths[0]))} is the table of a scan: it holds no records",
            "it has points, metrics, compare and plot",
        )
