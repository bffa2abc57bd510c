"""The curves of a run's points, and what the findings on their trials mean for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.analysis.compare.reasons import switched
from profharness.analysis.curves.knee import in_jobs, jobs_per_device
from profharness.analysis.curves.records import Capacity, Series
from profharness.analysis.curves.saturation import indistinct, series
from profharness.analysis.records import PointSummary
from profharness.analysis.run.trial_findings import eased
from profharness.analysis.verdict.cpu import under_pressure
from profharness.findings import Finding
from profharness.stats.throughput import sem_ms
from profharness.trace.model import F64
from profharness.trace.scan_table import AXES, Axis, ScanTable

_OF_TRIALS = frozenset({"warmup-leak", "missing-sync"})
_OF_LEVELS = frozenset({"errors", "littles-law", "generator-bound"})
_UNSTEADY = "unstable-level"


def eased_by_pressure(
    findings: Iterable[Finding], points: Sequence[PointSummary], told: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Findings on odd trials as warnings where other work held the CPU; `told` is what telemetry
    says of the whole run.
    """
    pressed = {point.point for point in points if under_pressure(point.metrics, told)}
    return tuple(
        eased(one, "the workload waited for cores meanwhile, which may explain it")
        if one.id in _OF_TRIALS and one.point in pressed
        else one
        for one in findings
    )


def run_series(
    points: tuple[PointSummary, ...],
    findings: Sequence[Finding],
    source: str,
    clients_per_job: int = 1,
) -> tuple[Series, ...]:
    """One curve per backend (and batch size, where clients are what varies) over the level that the
    scan varies.

    The trials were judged one by one, so the columns made from them are not judged again.
    """
    table = run_table(points, source)
    if table is None:
        return ()
    measured = [point for point in _measured(points) if getattr(point, table.axis) is not None]
    found = series(table, flagged=_flagged(measured, table.axis, table.key_columns, findings))
    own = [[point for point in measured if belongs(point, one)] for one in found]
    return tuple(
        _with_capacity(_with_intervals(one, levels), levels, clients_per_job)
        for one, levels in zip(found, own, strict=True)
    )


def _with_capacity(one: Series, points: Sequence[PointSummary], clients_per_job: int) -> Series:
    """Of a served scan: the knee in jobs, and what the server needs at the measured level that is
    nearest to it.
    """
    if one.axis != "concurrency" or one.knee is None or not any(point.mode for point in points):
        return one
    at = one.knee.n if one.knee.n is not None else one.levels[-1]
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
        one,
        capacity=capacity,
        clients_per_job=clients_per_job,
        jobs_per_device=jobs_per_device(in_jobs(one.knee, clients_per_job)),
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
    columns = ("backend", "batch_size") if several else ("backend",)
    return ScanTable(
        source=source,
        axis=axis,
        key_columns=columns,
        keys=tuple(_key(point, columns) for point in measured),
        level=_column([getattr(point, axis) for point in measured]),
        throughput=_column([point.throughput for point in measured]),
        throughput_sem=_column([point.throughput_sem for point in measured]),
        latency_ms=_column([point.latency_ms for point in measured]),
        latency_sem_ms=_column([sem_ms(point.trials_ms) for point in measured]),
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


def belongs(point: PointSummary, one: Series) -> bool:
    """Whether the point is one of the series' levels."""
    return point.rate is None and all(
        str(getattr(point, name, value)) == value for name, value in one.key.items()
    )


def _flagged(
    points: Sequence[PointSummary], axis: Axis, columns: Sequence[str], findings: Sequence[Finding]
) -> dict[tuple[str, ...], dict[float, str]]:
    """By series and level, the error that a finding on the trials or on the load raised, or that
    the level had not settled.
    """
    wrong = {
        one.point: one.id
        for one in findings
        if one.id == _UNSTEADY and "throughput_change" in one.figures
    }
    wrong |= {
        one.point: one.id
        for one in findings
        if one.id in _OF_TRIALS | _OF_LEVELS and one.severity == "error"
    }
    found: dict[tuple[str, ...], dict[float, str]] = {}
    for point in points:
        if point.point in wrong:
            found.setdefault(_key(point, columns), {})[float(getattr(point, axis))] = wrong[
                point.point
            ]
    return found


def _with_intervals(one: Series, points: Sequence[PointSummary]) -> Series:
    """Overlap judged by the points' own intervals, which hold the drift of the repeated points."""
    figures = {float(getattr(point, one.axis)): point.metrics.get("throughput") for point in points}
    ends = [
        (None, None) if figure is None else (figure.low, figure.high)
        for figure in (figures.get(level) for level in one.levels)
    ]
    low, high = (_column([pair[side] for pair in ends]) for side in (0, 1))
    return msgspec.structs.replace(
        one,
        findings=tuple(_explained(item, one, points) for item in one.findings),
        overlaps_best=indistinct(
            np.array(one.levels), np.array(one.throughput), low, high, one.flagged
        ),
    )


def _explained(item: Finding, one: Series, points: Sequence[PointSummary]) -> Finding:
    """A jump with the kernels that switch between its two levels, where both were traced."""
    if item.id != "step" or one.step is None or one.step.at not in one.levels[1:]:
        return item
    by_level = {float(getattr(point, one.axis)): point for point in points}
    before, after = (
        by_level.get(one.levels[one.levels.index(one.step.at) - 1]),
        by_level.get(one.step.at),
    )
    if before is None or after is None or not before.kernels or not after.kernels:
        return item
    told = switched(before.kernels, after.kernels)
    return msgspec.structs.replace(
        item,
        message=(
            f"{item.message}; kernels "
            f"{f'switch there: {told}' if told else 'are the same on both sides'}"
        ),
    )


def _column(values: Sequence[float | None]) -> F64:
    return np.array([np.nan if value is None else value for value in values], np.float64)
