"""What is certified: one point of a run, or a command as a whole, with all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary, Summary
from profharness.analysis.verdict.records import Verdict
from profharness.errors import UsageError
from profharness.findings import Finding, about, by_point
from profharness.rundir.manifest import Manifest
from profharness.stats.estimate import Figure


@dataclass(frozen=True)
class Subject:
    """A run, and the point of it that is judged; None for a command without points, and where no
    point was measured.
    """

    manifest: Manifest
    summary: Summary
    point: PointSummary | None
    series: Series | None

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Those of the point alone: the run's are of all its points together."""
        return self.summary.metrics if self.point is None else self.point.metrics

    def condition(self, name: str) -> float | None:
        """The value of a figure of the point, else of the run, whose conditions were the point's;
        None where it was not measured.
        """
        of_point = self.value(name)
        if of_point is not None:
            return of_point
        figure = self.summary.metrics.get(name)
        return None if figure is None or figure.value is None else float(figure.value)

    @property
    def verdict(self) -> Verdict | None:
        return self.summary.verdict if self.point is None else self.point.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those about the point and those about every point, of the curve too."""
        found = self.summary.findings
        if self.point is None:
            return found
        return tuple(about(self.point.point, by_point(found)))

    @property
    def is_scan(self) -> bool:
        return self.manifest.kind == "scan" or self.summary.axes is not None

    @property
    def name(self) -> str:
        """The point as a sentence calls it: by its values, where the scan is one over axes."""
        if self.point is None:
            return ""
        return setting_text(self.point.parameters) or self.point.point

    @property
    def on_cpu(self) -> bool:
        """Whether the work ran on the node's CPU: as the point's record says, else where the node
        has no accelerator.
        """
        of_point = {
            record.device
            for record in self.manifest.points
            if self.point is not None and record.id == self.point.point and record.device
        }
        if of_point:
            return of_point == {"cpu"}
        kinds = {device.kind for node in self.manifest.nodes for device in node.devices}
        return kinds <= {"cpu"} and not self.summary.trace.kernels

    def least(self, name: str) -> float | None:
        """The value of a figure, or the lower end of one that is a range; None where neither is
        known.
        """
        figure = self.figures.get(name)
        return None if figure is None else figure.least

    def value(self, name: str) -> float | None:
        """The value of a figure; None where it was not measured."""
        figure = self.figures.get(name)
        return None if figure is None or figure.value is None else float(figure.value)


def subject_of(manifest: Manifest, summary: Summary, point: str = "") -> Subject:
    """The point of that name, else the measured one with the highest throughput; of a search that
    measured its winner again, this. Raises UsageError for a name that the run has no point of.
    """
    chosen = _named(summary, point) if point else _best(summary)
    series = None
    if chosen is not None:
        curves = summary.series
        of_curves = members(summary.points, curves)
        series = next(
            (
                curve
                for curve, points in zip(curves, of_curves, strict=True)
                if any(one.point == chosen.point for one in points)
                and getattr(chosen, curve.axis) in curve.levels
            ),
            None,
        )
    return Subject(manifest, summary, chosen, series)


def _named(summary: Summary, name: str) -> PointSummary:
    known = {point.point: point for point in summary.points}
    if name not in known:
        has = f"its points are {', '.join(known)}" if known else "it has no points"
        raise UsageError(f"--point {name}: the run has no such point", has)
    return known[name]


def _best(summary: Summary) -> PointSummary | None:
    if summary.axes is not None and summary.axes.best is not None:
        return _named(summary, summary.axes.best)
    measured = [
        point
        for point in summary.points
        if point.state == "ok" and point.throughput is not None and point.kept
    ]
    return max(measured, key=lambda point: point.throughput or 0.0, default=None)
