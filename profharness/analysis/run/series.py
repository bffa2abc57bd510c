"""The curves of a run's points, and what the findings on their trials mean for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.analysis.compare.reasons import switched
from profharness.analysis.curves.knee import in_jobs, jobs_per_device
from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Capacity, Series
from profharness.analysis.curves.saturation import indistinct, series
from profharness.analysis.point_errors import latency_sem_ms, throughput_sem
from profharness.analysis.records import PointSummary
from profharness.analysis.run.trial_findings import eased
from profharness.analysis.verdict.cpu import under_pressure
from profharness.findings import Finding
from profharness.trace.model import F64
from profharness.trace.scan_table import AXES, RATE, Axis, ScanTable

_OF_TRIALS = frozenset({"warmup-leak", "missing-sync"})
_OF_LEVELS = frozenset({"errors", "littles-law", "generator-bound"})
_UNSTEADY = "unstable-level"


def eased_by_pressure(
    findings: Iterable[Finding], points: Sequence[PointSummary], of_run: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Findings on odd trials as warnings where other work held the CPU; `of_run` is what telemetry
    says of the whole run.
    """
    pressed = {point.point for point in points if under_pressure(point.metrics, of_run)}
    return tuple(
        eased(item, "the workload waited for cores meanwhile, which may explain it")
        if item.id in _OF_TRIALS and item.point in pressed
        else item
        for item in findings
    )


def run_series(
    points: tuple[PointSummary, ...],
    findings: Sequence[Finding],
    source: str,
    clients_per_job: int = 1,
) -> tuple[Series, ...]:
    """One curve per backend (and batch size, where clients are what varies; and cores per process,
    where plans differ in them) over the level that the scan varies.

    The trials were judged one by one, so the columns made from them are not judged again.
    """
    table = run_table(points, source)
    if table is None:
        return ()
    measured = [point for point in _measured(points) if getattr(point, table.axis) is not None]
    curves = series(table, flagged=_flagged(measured, table.axis, table.key_columns, findings))
    points_of_curve = members(measured, curves)
    return tuple(
        _with_capacity(_with_intervals(curve, levels), levels, clients_per_job)
        for curve, levels in zip(curves, points_of_curve, strict=True)
    )


def _with_capacity(curve: Series, points: Sequence[PointSummary], clients_per_job: int) -> Series:
    """The curve of a served scan with its knee in jobs, and with what the server needs at the
    measured level that is nearest to it.
    """
    if curve.axis != "concurrency" or curve.knee is None or not any(point.mode for point in points):
        return curve
    at = curve.knee.n if curve.knee.n is not None else curve.levels[-1]
    nearest = min(points, key=lambda point: abs(math.log((point.concurrency or 1) / at)))
    network = [
        value
        for name in ("load_sent", "load_received")
        if (value := _figure(nearest, name)) is not None
    ]
    capacity = Capacity(
        at=float(nearest.concurrency or 0),
        server_cores=_figure(nearest, "server_cores"),
        network_bytes_per_s=sum(network) if network else None,
    )
    return msgspec.structs.replace(
        curve,
        capacity=capacity,
        clients_per_job=clients_per_job,
        jobs_per_device=None
        if curve.no_plan
        else jobs_per_device(in_jobs(curve.knee, clients_per_job)),
    )


def _figure(point: PointSummary, name: str) -> float | None:
    figure = point.metrics.get(name)
    return None if figure is None or figure.value is None else float(figure.value)


def run_table(points: Sequence[PointSummary], source: str) -> ScanTable | None:
    """The measured points as a table of levels; None for fewer than two levels. Open loops are no
    levels of a curve.
    """
    measured = _measured(points)
    axis = _axis(measured)
    if axis is None:
        return None
    measured = [point for point in measured if getattr(point, axis) is not None]
    several = axis == "concurrency" and len({point.batch_size for point in measured}) > 1
    columns: tuple[str, ...] = ("backend", "batch_size") if several else ("backend",)
    if len({point.cores_per_process for point in measured}) > 1:
        columns = ("backend", *_varied(measured, axis), "cores_per_process")
    return ScanTable(
        source=source,
        axis=axis,
        key_columns=columns,
        keys=tuple(_key(point, columns) for point in measured),
        level=_column([getattr(point, axis) for point in measured]),
        throughput=_column([point.throughput for point in measured]),
        throughput_sem=_column([throughput_sem(point) for point in measured]),
        latency_ms=_column([point.latency_ms for point in measured]),
        latency_sem_ms=_column([latency_sem_ms(point) for point in measured]),
        unit=_unit(measured),
    )


def _unit(points: Sequence[PointSummary]) -> str:
    """`jets/s`, where the throughput figures name their items."""
    figures = (point.metrics.get("throughput") for point in points)
    return next((figure.unit for figure in figures if figure is not None and figure.unit), RATE)


def _varied(points: Sequence[PointSummary], axis: Axis) -> tuple[str, ...]:
    """What plans of processes by cores differ in beside the axis and the cores."""
    return tuple(
        name
        for name in ("batch_size", "processes")
        if name != axis and len({getattr(point, name) for point in points}) > 1
    )


def _measured(points: Sequence[PointSummary]) -> list[PointSummary]:
    return [
        point for point in points if point.throughput and point.state == "ok" and point.rate is None
    ]


def _axis(points: Sequence[PointSummary]) -> Axis | None:
    """What the scan varies; of a served one the clients, wherever they vary."""
    distinct = {axis: len({getattr(point, axis) for point in points} - {None}) for axis in AXES}
    axis: Axis = max(AXES, key=lambda name: distinct[name])
    chosen: Axis = "concurrency" if distinct["concurrency"] > 1 else axis
    return chosen if distinct[chosen] > 1 else None


def _key(point: PointSummary, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(point, name)) for name in columns)


def _flagged(
    points: Sequence[PointSummary], axis: Axis, columns: Sequence[str], findings: Sequence[Finding]
) -> dict[tuple[str, ...], dict[float, str]]:
    """By series and level, the error that a finding on the trials or on the load raised, or that
    the level had not settled.
    """
    wrong = {
        item.point: item.id
        for item in findings
        if item.id == _UNSTEADY and "throughput_change" in item.figures
    }
    wrong |= {
        item.point: item.id
        for item in findings
        if item.id in _OF_TRIALS | _OF_LEVELS and item.severity == "error"
    }
    flagged: dict[tuple[str, ...], dict[float, str]] = {}
    for point in points:
        if point.point in wrong:
            flagged.setdefault(_key(point, columns), {})[float(getattr(point, axis))] = wrong[
                point.point
            ]
    return flagged


def _with_intervals(curve: Series, points: Sequence[PointSummary]) -> Series:
    """Overlap judged by the points' own intervals, which hold the drift of the repeated points."""
    figures = {
        float(getattr(point, curve.axis)): point.metrics.get("throughput") for point in points
    }
    ends = [
        (None, None) if figure is None else (figure.low, figure.high)
        for figure in (figures.get(level) for level in curve.levels)
    ]
    low, high = (_column([pair[side] for pair in ends]) for side in (0, 1))
    return msgspec.structs.replace(
        curve,
        findings=tuple(_explained(item, curve, points) for item in curve.findings),
        overlaps_best=indistinct(
            np.array(curve.levels), np.array(curve.throughput), low, high, curve.flagged
        ),
    )


def _explained(item: Finding, curve: Series, points: Sequence[PointSummary]) -> Finding:
    """A jump with the kernels that switch between its two levels, where both were traced."""
    if item.id != "step" or curve.step is None or curve.step.at not in curve.levels[1:]:
        return item
    by_level = {float(getattr(point, curve.axis)): point for point in points}
    before, after = (
        by_level.get(curve.levels[curve.levels.index(curve.step.at) - 1]),
        by_level.get(curve.step.at),
    )
    if before is None or after is None or not before.kernels or not after.kernels:
        return item
    switch = switched(before.kernels, after.kernels)
    return msgspec.structs.replace(
        item,
        message=(
            f"{item.message}; kernels "
            f"{f'switch there: {switch}' if switch else 'are the same on both sides'}"
        ),
    )


def _column(values: Sequence[float | None]) -> F64:
    return np.array([np.nan if value is None else value for value in values], np.float64)
