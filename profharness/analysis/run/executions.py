"""A point of a scan over axes: its rate over all executions or levels, what telemetry says of them,
and the device figures of the pass that recorded it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.analysis.axes.caps import cap_curves
from profharness.analysis.axes.front import front_of
from profharness.analysis.axes.records import AxisLevels
from profharness.analysis.axes.scan import axes_scan
from profharness.analysis.point_errors import figure_ends, sem_of
from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.records import Figure, PointSummary
from profharness.analysis.run.trials import BARE
from profharness.analysis.run.view import PointResult, RunView
from profharness.rundir.manifest import PointRecord
from profharness.stats.energy import OF_COMMAND, OF_LEVEL, OF_SCAN
from profharness.stats.intervals import Intervals, union
from profharness.stats.package_figures import power_figures

_OF_TRIALS = ("warmup_trials", "warmup_time")


def of_executions(view: RunView, summary: PointSummary, metrics: dict[str, Figure]) -> PointResult:
    """The summary of a point, whose device figures stand in `metrics` already. A point that failed
    has none.
    """
    assert view.rated is not None
    point = next((one for one in view.rated.points if one.point == summary.point), None)
    records = [
        record
        for record in view.manifest.points
        if record.id == summary.point and record.pass_name == BARE
    ]
    summary = _as_recorded(summary, records)
    metrics = {name: figure for name, figure in metrics.items() if name not in _OF_TRIALS}
    if point is None:
        return PointResult(msgspec.structs.replace(summary, metrics=metrics), ())
    count = point.executions
    word = "level" if any(record.level is not None for record in records) else "execution"
    origin = f"{BARE} pass, {count} {word}{'s' * (count != 1)}"
    metrics["throughput"] = Figure(
        value=point.throughput,
        unit=view.rated.unit,
        low=point.low,
        high=point.high,
        source=origin,
    )
    spans = _spans(view, records)
    if spans is not None:
        telemetry = f"{BARE} pass, telemetry"
        metrics |= figures_in(view.telemetry, spans, telemetry)
        items = _items(records)
        metrics |= power_figures(
            view.telemetry, view.packages, spans, items, telemetry, _longer(view)
        )
    walls = _walls(records)
    return PointResult(
        msgspec.structs.replace(
            summary,
            throughput=point.throughput,
            throughput_sem=sem_of(figure_ends(metrics["throughput"])),
            executions=count,
            wall_s=sum(walls) / len(walls) if walls else None,
            values=point.values,
            kept=point.kept,
            overhead={},
            metrics=metrics,
        ),
        (),
    )


def _longer(view: RunView) -> str:
    """What gives power a longer window: the program itself, or the options of our own load."""
    if view.manifest.command:
        return OF_COMMAND
    served = any(record.level is not None for record in view.manifest.points)
    return OF_LEVEL if served else OF_SCAN


def of_settings(view: RunView, level: PointResult) -> PointResult:
    """The summary of a setting of a server, whose first level has its figures already: rate, values
    and telemetry are those of all its levels.
    """
    of_all = of_executions(view, level.summary, dict(level.summary.metrics))
    summary = msgspec.structs.replace(
        of_all.summary,
        mode="",
        batch_size=None,
        concurrency=None,
        rate=None,
        overhead=level.summary.overhead,
    )
    return PointResult(summary, level.findings)


def _as_recorded(summary: PointSummary, records: list[PointRecord]) -> PointSummary:
    """With the values of the axes; failed where one of its executions failed."""
    failed = next((record for record in records if record.state == "failed"), None)
    if failed is not None:
        summary = msgspec.structs.replace(summary, state="failed", error=failed.error)
    return msgspec.structs.replace(
        summary,
        backend="",
        trials=0,
        warmup_trials=0,
        parameters=next((record.parameters for record in records if record.parameters), {}),
    )


def _spans(view: RunView, records: list[PointRecord]) -> Intervals | None:
    """When the executions of the point were measured, on the run's clock."""
    spans = [
        measured.span
        for record in records
        for measured in (view.trials.get(_key(record)), view.levels.get(_key(record)))
        if measured is not None
    ]
    return union(*spans) if spans else None


def _key(record: PointRecord) -> tuple[str, str]:
    return BARE, f"{record.id}~{record.repeat}" if record.repeat else record.id


def _items(records: list[PointRecord]) -> int | None:
    """The items of all executions, where the script marked them."""
    items = sum(record.execution.items for record in records if record.execution is not None)
    return items or None


def _walls(records: list[PointRecord]) -> list[float]:
    return [record.execution.wall_ns / 1e9 for record in records if record.execution is not None]


def in_order_of_axes(
    points: tuple[PointSummary, ...], axes: Sequence[AxisLevels]
) -> tuple[PointSummary, ...]:
    """The points by the places of their values, the last axis varying fastest; what has none goes
    to the end.
    """

    def place(point: PointSummary) -> tuple[int, ...]:
        values = [point.parameters.get(axis.name) for axis in axes]
        return tuple(
            axis.values.index(value) if value in axis.values else len(axis.values)
            for axis, value in zip(axes, values, strict=True)
        )

    return tuple(sorted(points, key=place))


def axes_fields(view: RunView, points: Sequence[PointSummary]) -> dict[str, object]:
    """The field of the summary that a scan of a command has."""
    verdicts = {point.point: point.verdict for point in points if point.verdict is not None}
    scan = axes_scan(view.manifest, view.rated, verdicts)
    if scan is None:
        return {"axes": None}
    metrics = {point.point: point.metrics for point in points}
    kept = [point for point in scan.points if point.kept]
    return {
        "axes": msgspec.structs.replace(
            scan, caps=cap_curves(scan, metrics), front=front_of(kept, metrics)
        )
    }
