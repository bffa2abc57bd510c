"""The curves of a run's points, and what the findings on their trials mean for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.analysis.cpu_verdict import under_pressure
from profharness.analysis.records import PointSummary, Series
from profharness.analysis.saturation import indistinct, series
from profharness.analysis.trial_findings import eased
from profharness.findings import Finding
from profharness.trace.model import F64
from profharness.trace.scan_table import AXES, Axis, ScanTable

_OF_TRIALS = frozenset({"warmup-leak", "missing-sync"})


def eased_by_pressure(findings: Iterable[Finding], points: Sequence[PointSummary], told: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings on odd trials as warnings where other work held the CPU; `told` is what telemetry says of the whole run."""
    pressed = {point.point for point in points if under_pressure(point.metrics, told)}
    return tuple(eased(one, "other work competed for the CPU, which may explain it") if one.id in _OF_TRIALS and one.point in pressed else one
                 for one in findings)


def run_series(points: tuple[PointSummary, ...], findings: Sequence[Finding], source: str) -> tuple[Series, ...]:
    """One curve per backend over the level that the scan varies; none for fewer than two levels.

    The trials were judged one by one, so the columns made from them are not judged again.
    """
    measured = [point for point in points if point.throughput and point.state == "ok"]
    distinct = {axis: {getattr(point, axis) for point in measured} - {None} for axis in AXES}
    axis: Axis = max(AXES, key=lambda name: len(distinct[name]))
    measured = [point for point in measured if getattr(point, axis) is not None]
    if len(distinct[axis]) < 2:
        return ()
    table = ScanTable(
        source=source, axis=axis, key_columns=("backend",), keys=tuple((point.backend,) for point in measured),
        level=_column([getattr(point, axis) for point in measured]), throughput=_column([point.throughput for point in measured]),
        throughput_sem=_column([point.throughput_sem for point in measured]), latency_ms=_column([point.latency_ms for point in measured]),
        latency_sem_ms=_column([_latency_sem(point) for point in measured]))
    return tuple(_with_intervals(one, [point for point in measured if point.backend == one.key["backend"]])
                 for one in series(table, flagged=_flagged(measured, axis, findings)))


def _flagged(points: Sequence[PointSummary], axis: Axis, findings: Sequence[Finding]) -> dict[tuple[str, ...], dict[float, str]]:
    """By series and level, the error that a finding on the trials raised."""
    wrong = {one.point: one.id for one in findings if one.id in _OF_TRIALS and one.severity == "error"}
    found: dict[tuple[str, ...], dict[float, str]] = {}
    for point in points:
        if point.point in wrong:
            found.setdefault((point.backend,), {})[float(getattr(point, axis))] = wrong[point.point]
    return found


def _with_intervals(one: Series, points: Sequence[PointSummary]) -> Series:
    """Overlap judged by the points' own intervals, which hold the drift of the repeated points."""
    figures = {float(getattr(point, one.axis)): point.metrics.get("throughput") for point in points}
    ends = [(None, None) if figure is None else (figure.low, figure.high) for figure in (figures.get(level) for level in one.levels)]
    low, high = (_column([pair[side] for pair in ends]) for side in (0, 1))
    return msgspec.structs.replace(one, overlaps_best=indistinct(np.array(one.levels), np.array(one.throughput), low, high, one.flagged))


def _column(values: Sequence[float | None]) -> F64:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _latency_sem(point: PointSummary) -> float | None:
    if len(point.trials_ms) < 2:
        return None
    return float(np.std(point.trials_ms, ddof=1) / np.sqrt(len(point.trials_ms)))
