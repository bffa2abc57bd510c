"""What the figures of a run's points are made from, and what one point comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from profharness.analysis.axes.points import RatedPoints, rated_points
from profharness.analysis.kernels.facts import NO_YARDSTICK, Yardstick
from profharness.analysis.load.run_levels import Levels
from profharness.analysis.records import PointSummary
from profharness.analysis.run.trials import Trials
from profharness.findings import Finding
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.stats.packages import Package
from profharness.stats.streams import Stream
from profharness.stats.throughput import Drift, TrialStats, summarise_trials
from profharness.trace.model import F64


@dataclass(frozen=True, eq=False)
class RunView:
    """What all points of one run share. `reference` is the pass that throughput comes from.

    `repeats` are the drifts of all repeated points, `drifts` the largest one of each backend.
    """

    manifest: Manifest
    trials: Trials
    reference: str
    chosen: str | None
    telemetry: tuple[Stream, ...]
    drifts: dict[str, Drift]
    packages: tuple[Package, ...] = ()
    yardstick: Yardstick = NO_YARDSTICK
    repeats: tuple[Drift, ...] = ()
    levels: Levels = field(default_factory=dict)

    def rates(self, pass_name: str, point: str) -> F64 | None:
        """Items/s of the point's trials, or of the parts of a level's window; None where the pass
        has none.
        """
        trials, level = self.trials.get((pass_name, point)), self.levels.get((pass_name, point))
        if trials is not None:
            return trials.rates
        return level.rates if level is not None else None

    def stats(self, point: str, pass_name: str | None = None) -> TrialStats | None:
        """Statistics of the point in a pass (default: the reference); None where it has no
        trials.
        """
        trials = self.trials.get((pass_name or self.reference, point))
        return (
            None
            if trials is None
            else summarise_trials(trials.durations_ns, trials.items, f"{trials.pass_name}/{point}")
        )

    def records(self, point: str) -> list[PointRecord]:
        """First measurements of the point, the reference pass first."""
        first_measurements = self._first_measurements.get(point, [])
        return sorted(first_measurements, key=lambda record: record.pass_name != self.reference)

    @cached_property
    def rated(self) -> RatedPoints | None:
        """The points of a scan of a command over their executions; None for another run."""
        return rated_points(self.manifest)

    @cached_property
    def _first_measurements(self) -> dict[str, list[PointRecord]]:
        found: dict[str, list[PointRecord]] = {}
        for record in self.manifest.points:
            if record.repeat == 0:
                found.setdefault(record.id, []).append(record)
        return found


@dataclass(frozen=True)
class PointResult:
    """A point and the findings on its measurement."""

    summary: PointSummary
    findings: tuple[Finding, ...]
