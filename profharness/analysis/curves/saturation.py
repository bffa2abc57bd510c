"""From a scan's levels to its curves: what bends them, where they level off, and what to run at
(docs/metrics.md#curves).

Order: are the columns credible; is there a jump; then the curve, on the levels from the jump on.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from types import MappingProxyType

import numpy as np

from profharness.analysis.curves.batch import BATCH
from profharness.analysis.curves.fit import Measured
from profharness.analysis.curves.fitted import (
    analyse,
    fall_finding,
    step_finding,
    within_peak,
)
from profharness.analysis.curves.knee import (
    MARGIN,
    NO_PLAN,
    jobs_per_device,
    told_apart,
)
from profharness.analysis.curves.least_squares import Bools
from profharness.analysis.curves.records import (
    Recommended,
    Series,
    StepChange,
)
from profharness.analysis.load.level_checks import Level, level_findings
from profharness.findings import Finding
from profharness.stats.bootstrap import Z95
from profharness.trace.model import F64
from profharness.trace.scan_table import Axis, ScanTable

WITHIN = 0.05

_WRONG = frozenset({"warmup-leak", "missing-sync"})
# Reasons to keep a level out of the fit that are none against running at it.
_DOUBTFUL = frozenset({"unstable-level"})
Flagged = Mapping[tuple[str, ...], Mapping[float, str]]
"""By the key of a series and by level: the id of the finding that says its measurement is wrong."""


def series(
    table: ScanTable, margin: float = MARGIN, flagged: Flagged | None = None
) -> tuple[Series, ...]:
    """One Series per distinct key, in the order of the table; deterministic for the same table.

    Rows of one series with the same level are averaged. `margin` is the distance kept below the
    knee. `flagged` names the levels whose trials are known to be wrong; None judges them by the
    columns.
    """
    return tuple(_series(table, key, rows, margin, flagged) for key, rows in table.groups().items())


def _series(
    table: ScanTable,
    key: tuple[str, ...],
    rows: list[int],
    margin: float,
    flagged: Flagged | None,
) -> Series:
    columns = _average(table, rows)
    level, throughput, sem, latency, _ = columns
    measured = Measured(level, throughput, np.nan_to_num(sem / throughput, nan=0.0))
    seed = "|".join((table.axis, *key))
    checks = _checks(table.axis, columns) if flagged is None else ()
    wrong = _by_level(checks) if flagged is None else flagged.get(key, {})
    used = fit_levels(level, wrong)
    measured = measured.at(used)
    step, fitted = analyse(measured, table.axis, seed, wrong)
    fall = fall_finding(measured, fitted.usl)
    fitted = within_peak(fitted, fall[0], measured) if fall else fitted
    findings = (
        *checks,
        *step_finding(step, measured),
        *fall,
        *fitted.findings,
    )
    plans = table.axis != "batch_size"
    low, high = throughput - Z95 * sem, throughput + Z95 * sem
    apart = told_apart(throughput[used], low[used], high[used])
    doubted, wrong = wrong, {at: kind for at, kind in wrong.items() if kind not in _DOUBTFUL}
    return Series(
        key=dict(zip(table.key_columns, key, strict=True)),
        batch=fitted.batch,
        usl=fitted.usl,
        knee=fitted.knee,
        jobs_per_device=jobs_per_device(fitted.knee, margin) if plans and apart else None,
        no_plan="" if apart or not plans or fitted.knee.n is None else NO_PLAN,
        recommended=recommend(level, throughput, flagged=wrong),
        step=step,
        findings=findings,
        axis=table.axis,
        levels=tuple(level.tolist()),
        throughput=tuple(throughput.tolist()),
        unit=table.unit,
        throughput_sem=_optional(sem),
        latency_ms=_optional(latency),
        flagged=tuple(at for at in level.tolist() if at in wrong),
        recommended_note=_left_out(level, wrong),
        fitted_note="; ".join(
            filter(None, (_fitted_on(level, used, doubted), _scaled(measured, step)))
        ),
        overlaps_best=indistinct(level, throughput, low, high, wrong),
    )


def fit_levels(level: F64, wrong: Container[float]) -> Bools:
    """Which levels a curve is fitted on: those whose measurement is sound, or all where these are
    too few for a curve.
    """
    sound = np.array([at not in wrong for at in level.tolist()])
    return sound if sound.sum() > BATCH.parameters else np.ones_like(sound)


def _fitted_on(level: F64, used: Bools, wrong: Mapping[float, str]) -> str:
    """`fitted on 9 of 11 levels: left out 4, 8 (warmup-leak)`; empty where every level is sound."""
    flagged = [at for at in level.tolist() if at in wrong]
    if not flagged:
        return ""
    if used.all():
        return (
            f"fitted on all {len(level)} levels, though {len(flagged)} are flagged "
            f"({_by_kind(level, wrong)}): the others are too few for a curve"
        )
    return f"fitted on {used.sum()} of {len(level)} levels: left out {_by_kind(level, wrong)}"


def _scaled(measured: Measured, step: StepChange | None) -> str:
    """The note on a jump near the end, with too few levels behind it for a curve of their own."""
    behind = 0 if step is None else int((measured.level >= step.at).sum())
    if step is None or behind > BATCH.parameters or len(measured.level) <= BATCH.parameters:
        return ""
    return f"only {behind} from the jump on: those before it enter times {step.ratio:.2f}"


def _by_kind(level: F64, wrong: Mapping[float, str]) -> str:
    """`4, 8 (warmup-leak), 1024 (missing-sync)`."""
    kinds = dict.fromkeys(
        kind for kind in (wrong.get(at) for at in level.tolist()) if kind is not None
    )
    return ", ".join(
        f"{', '.join(f'{at:g}' for at in level.tolist() if wrong.get(at) == kind)} ({kind})"
        for kind in kinds
    )


def _average(table: ScanTable, rows: list[int]) -> tuple[F64, F64, F64, F64, F64]:
    """Level, throughput, its error, latency, its error; repeated levels averaged, errors with
    them.
    """
    level = table.level[rows]
    distinct, where = np.unique(level, return_inverse=True)
    count = np.bincount(where)

    def mean(column: F64) -> F64:
        return np.asarray(np.bincount(where, column[rows]) / count)

    def error(column: F64) -> F64:
        return np.asarray(np.sqrt(np.bincount(where, column[rows] ** 2)) / count)

    return (
        distinct,
        mean(table.throughput),
        error(table.throughput_sem),
        mean(table.latency_ms),
        error(table.latency_sem_ms),
    )


def _optional(column: F64) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else float(value) for value in column)


def _checks(axis: Axis, columns: tuple[F64, F64, F64, F64, F64]) -> tuple[Finding, ...]:
    """T L / s is known only where the level is the number of items of a trial."""
    if axis != "batch_size":
        return ()
    level, throughput, sem, latency, latency_sem = columns
    return level_findings(
        Level(float(at), float(t * lat * 1e-3 / at), _relative(t_sem, t), _relative(lat_sem, lat))
        for at, t, t_sem, lat, lat_sem in zip(
            level, throughput, sem, latency, latency_sem, strict=True
        )
        if not math.isnan(lat)
    )


def _by_level(checks: tuple[Finding, ...]) -> dict[float, str]:
    """Levels that the columns show to be wrong, and by what. An odd trial does not make a level
    wrong.
    """
    return {
        float(level): item.id
        for item in checks
        if item.id in _WRONG
        for level in str(item.figures["levels"]).split(", ")
    }


def indistinct(
    level: F64, throughput: F64, low: F64, high: F64, flagged: Container[float] = ()
) -> tuple[float, ...]:
    """The levels whose interval overlaps that of the highest throughput; those that are flagged or
    have no interval are left out.
    """
    sound = np.array([at not in flagged for at in level.tolist()])
    best = int(np.where(sound, throughput, -np.inf).argmax())
    overlapping = sound & (high >= low[best])
    overlapping[best] = False
    return tuple(level[overlapping].tolist())


def _relative(error: float, value: float) -> float | None:
    return None if math.isnan(error) else float(error / value)


def recommend(
    level: F64,
    throughput: F64,
    within: float = WITHIN,
    flagged: Mapping[float, str] = MappingProxyType({}),
) -> Recommended:
    """The smallest level whose throughput is within 5 % of the best one measured.

    Levels that are flagged (with the finding's id) do not count, unless all are.
    """
    sound = np.array([at not in flagged for at in level.tolist()])
    allowed = sound if sound.any() else np.ones_like(sound)
    best = throughput[allowed].max()
    at = int((allowed & (throughput >= (1 - within) * best)).argmax())
    return Recommended(at=float(level[at]), throughput=float(throughput[at]))


def _left_out(level: F64, flagged: Mapping[float, str]) -> str:
    """`left out: 4, 8 (warmup-leak), 1024 (missing-sync)`; empty where no level is flagged."""
    kinds = dict.fromkeys(flagged[at] for at in level.tolist() if at in flagged)
    if not kinds:
        return ""
    return (
        f"left out: {_by_kind(level, flagged)}"
        if any(at not in flagged for at in level.tolist())
        else f"not trustworthy: {', '.join(kinds)} at every level"
    )


def recommend_within_latency(
    level: F64, throughput: F64, latency_ms: F64, limit_ms: float, flagged: Container[float] = ()
) -> Recommended | None:
    """The best throughput among the sound levels whose latency keeps the limit; None where none
    does.
    """
    allowed = (latency_ms <= limit_ms) & np.array([at not in flagged for at in level.tolist()])
    if not allowed.any():
        return None
    at = int(np.where(allowed, throughput, -np.inf).argmax())
    return Recommended(at=float(level[at]), throughput=float(throughput[at]))
