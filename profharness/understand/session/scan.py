"""The CSV of a scan as an object: its points with their figures, and no records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.errors import InputError
from profharness.report.frame import frame_of
from profharness.rundir.shown.screen import one_line
from profharness.understand.session.recording import Recording
from profharness.understand.session.tables import Records

if TYPE_CHECKING:
    from profharness.analysis.records import Figure, PointSummary, Summary


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Recording):
    """A table of throughput over batch size, concurrency or processes (docs/formats.md#scan-csv).

    It has points, figures, plots and comparisons; what needs records, such as `hotspots` and
    `trace`, raises InputError.
    """

    @cached_property
    def summary(self) -> Summary:
        """The points with their figures: throughput in items/s with its 95 % interval where the
        table has standard errors, mean latency in ms.
        """
        from profharness.understand.loose.scans import read_scan

        read = read_scan(self.paths[0]).summary
        points = tuple(
            msgspec.structs.replace(point, metrics=_figures(point)) for point in read.points
        )
        return msgspec.structs.replace(read, points=points)

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


def _figures(point: PointSummary) -> dict[str, Figure]:
    from profharness.analysis.records import Figure
    from profharness.stats.bootstrap import Z95

    figures: dict[str, Figure] = {}
    if point.throughput is not None:
        half = None if point.throughput_sem is None else Z95 * point.throughput_sem
        low, high = (
            (None, None) if half is None else (point.throughput - half, point.throughput + half)
        )
        figures["throughput"] = Figure(
            value=point.throughput, unit="items/s", low=low, high=high, source="the table"
        )
    if point.latency_ms is not None:
        figures["latency_mean"] = Figure(value=point.latency_ms, unit="ms", source="the table")
    return figures
