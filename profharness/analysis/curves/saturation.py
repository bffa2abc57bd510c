"""From a scan's levels to its curves: what bends them, where they level off, and what to run at
(METRICS 4).

Order: are the columns credible; is there a jump; then the curve, on the levels from the jump on.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from profharness.analysis.curves.batch import BATCH, batch_curve
from profharness.analysis.curves.fit import CurveFit, Measured, fit_curve, local_noise, refit_copies
from profharness.analysis.curves.jumps import find_step, impossible_rise
from profharness.analysis.curves.knee import (
    MARGIN,
    jobs_per_device,
    knee_of_asymptotes,
    knee_of_law,
    knee_of_points,
)
from profharness.analysis.curves.least_squares import Bools
from profharness.analysis.curves.usl import USL, fall_observed, usl_law
from profharness.analysis.load.level_checks import Level, level_findings
from profharness.analysis.records import BatchCurve, Knee, Recommended, Series, StepChange, Usl
from profharness.findings import Finding, finding
from profharness.stats.bootstrap import Z95
from profharness.trace.model import F64
from profharness.trace.scan_table import Axis, ScanTable

WITHIN = 0.05
_WORST_MISFIT = 0.10
_SIGMAS = 3.0
_FALL = 0.03
# Akaike weights of 20 to 1 against the law, for series long enough to tell.
_EVIDENCE = 6.0
_MISFIT_RMS = 0.01

_WRONG = frozenset({"warmup-leak", "missing-sync"})
# Reasons to keep a level out of the fit that are none against running at it.
_DOUBTFUL = frozenset({"unstable-level"})
Flagged = Mapping[tuple[str, ...], Mapping[float, str]]
"""By the key of a series and by level: the id of the finding that says its measurement is wrong."""

_NO_KNEE = Knee(n=None)


@dataclass(frozen=True)
class _Fitted:
    """The curve figures of one series; absent where the data do not carry them."""

    batch: BatchCurve | None = None
    usl: Usl | None = None
    knee: Knee = _NO_KNEE
    findings: tuple[Finding, ...] = ()


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
    table: ScanTable, key: tuple[str, ...], rows: list[int], margin: float, flagged: Flagged | None
) -> Series:
    columns = _average(table, rows)
    level, throughput, sem, latency, _ = columns
    measured = Measured(level, throughput, np.nan_to_num(sem / throughput, nan=0.0))
    seed = "|".join((table.axis, *key))
    checks = _checks(table.axis, columns) if flagged is None else ()
    wrong = _by_level(checks) if flagged is None else flagged.get(key, {})
    used = fit_levels(level, wrong)
    measured = measured.at(used)
    step, fitted = _analyse(measured, table.axis, seed, wrong)
    findings = (
        *checks,
        *_step_finding(step, measured),
        *_fall(measured, fitted.usl),
        *fitted.findings,
    )
    doubted, wrong = wrong, {at: kind for at, kind in wrong.items() if kind not in _DOUBTFUL}
    return Series(
        key=dict(zip(table.key_columns, key, strict=True)),
        batch=fitted.batch,
        usl=fitted.usl,
        knee=fitted.knee,
        jobs_per_device=None
        if table.axis == "batch_size"
        else jobs_per_device(fitted.knee, margin),
        recommended=recommend(level, throughput, flagged=wrong),
        step=step,
        findings=findings,
        axis=table.axis,
        levels=tuple(level.tolist()),
        throughput=tuple(throughput.tolist()),
        throughput_sem=_optional(sem),
        latency_ms=_optional(latency),
        flagged=tuple(at for at in level.tolist() if at in wrong),
        recommended_note=_left_out(level, wrong),
        fitted_note="; ".join(
            filter(None, (_fitted_on(level, used, doubted), _scaled(measured, step)))
        ),
        overlaps_best=indistinct(
            level, throughput, throughput - Z95 * sem, throughput + Z95 * sem, wrong
        ),
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
    """Of a jump near the end, with too few levels behind it for a curve of their own."""
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
        float(level): one.id
        for one in checks
        if one.id in _WRONG
        for level in str(one.figures["levels"]).split(", ")
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


def _analyse(
    measured: Measured, axis: Axis, seed: str, wrong: Mapping[float, str]
) -> tuple[StepChange | None, _Fitted]:
    """The jump first; then the curve from the jump on.

    Where levels that are known to be `wrong` had to be taken: a jump up to a level after one whose
    warm-up is in its mean is none, and such levels do not count against the curve.
    """
    leaky = frozenset(at for at, kind in wrong.items() if kind == "warmup-leak")
    batch = axis == "batch_size"
    step = find_step(measured, seed)
    if step is None and batch:
        step = impossible_rise(measured)
    position = 0 if step is None else int(np.searchsorted(measured.level, step.at))
    if step is not None and float(measured.level[position - 1]) in leaky and step.at not in leaky:
        step, position = None, 0
    rest = after_jump(measured, step, position)
    return step, (
        _fit_batch(rest, seed, wrong)
        if batch
        else _fit_concurrency(rest, seed, jumped=step is not None)
    )


def after_jump(measured: Measured, step: StepChange | None, position: int) -> Measured:
    """The levels from the jump on; where these are too few for a curve, all of them, those before
    it times its factor.
    """
    rest = measured.from_position(position)
    return (
        rest
        if step is None or len(rest.level) > BATCH.parameters
        else measured.times(step.ratio, position)
    )


def _rms(fit: CurveFit) -> float:
    return float(np.sqrt(np.mean(fit.residual**2)))


def _fit_batch(measured: Measured, seed: str, wrong: Mapping[float, str]) -> _Fitted:
    fit = fit_curve(BATCH, measured)
    if fit is None:
        return _Fitted()
    curve = batch_curve(fit, seed)
    found = [*_poor_fit(fit, "the curve T(b)", wrong)]
    open_ends = [
        name
        for name, one in (("t_max", curve.t_max), ("b_half", curve.b_half), ("b90", curve.b90))
        if None in (one.value, one.low, one.high)
    ]
    if open_ends:
        top = float(measured.level[-1])
        reached = (
            "90 % of the extrapolated maximum is not reached in this scan"
            if curve.b90.value is None
            else "the plateau is not bounded by this scan"
        )
        found.append(
            finding(
                "peak-beyond-range",
                f"{reached} (largest level {top:g}): no upper end for {', '.join(open_ends)}",
                largest_level=top,
                open=", ".join(open_ends),
            )
        )
    return _Fitted(
        batch=curve,
        knee=Knee(n=curve.b_half.value, low=curve.b_half.low, high=curve.b_half.high),
        findings=tuple(found),
    )


def _fit_concurrency(measured: Measured, seed: str, *, jumped: bool) -> _Fitted:
    law, curve = fit_curve(USL, measured), fit_curve(BATCH, measured)
    if law is None or curve is None:
        return _Fitted(knee=knee_of_points(measured))
    poor = _poor_fit(law, "the Universal Scalability Law") or _outdone(law, curve)
    if poor:
        knee = (
            knee_of_points(measured)
            if jumped or _poor_fit(curve, "")
            else knee_of_asymptotes(curve, refit_copies(curve, seed))
        )
        if knee.n is not None and knee.n < measured.level[0]:
            knee = knee_of_points(
                measured
                # a corner before the first level is the curve's, not the data's: one client gives
                # lambda
            )
        return _Fitted(knee=knee, findings=(*poor, *_beyond(measured, None, knee)))
    copies = refit_copies(law, seed)
    usl = usl_law(law, copies)
    knee = knee_of_points(measured) if jumped else knee_of_law(law, copies)
    found = [*_beyond(measured, usl, knee)]
    if usl.sigma.high is not None and usl.sigma.high < 0:
        found.append(
            finding(
                "superlinear",
                f"sigma is {usl.sigma.value:.3g} (95 % below {usl.sigma.high:.3g}): "
                "each client gains from the others",
                sigma=float(usl.sigma.value or 0),
            )
        )
    return _Fitted(usl=usl, knee=knee, findings=tuple(found))


def _beyond(measured: Measured, usl: Usl | None, knee: Knee) -> tuple[Finding, ...]:
    """The finding for ends that the scan does not bound."""
    ends: list[Any] = [knee.n, knee.low, knee.high]
    names = ["knee"] if None in ends else []
    if usl is not None:
        names += [
            name
            for name, one in (("lambda", usl.lambda_), ("n_peak", usl.n_peak))
            if None in (one.value, one.low, one.high)
        ]
    if not names:
        return ()
    top = float(measured.level[-1])
    return (
        finding(
            "peak-beyond-range",
            f"the scan up to {top:g} does not bound {', '.join(names)}",
            largest_level=top,
            open=", ".join(names),
        ),
    )


def _poor_fit(fit: CurveFit, what: str, wrong: Container[float] = ()) -> tuple[Finding, ...]:
    """Residual test: a point further off than 10 % and than three times its noise, not counting the
    levels that are known to be wrong.
    """
    noise = np.hypot(fit.measured.error, local_noise(fit.measured))
    residual = np.abs(fit.residual)
    sound = np.array([at not in wrong for at in fit.measured.level.tolist()])
    far = sound & (residual > np.maximum(_WORST_MISFIT, _SIGMAS * noise))
    if not far.any():
        return ()
    worst = int(np.where(far, residual, 0).argmax())
    misfit = float(math.expm1(residual[worst]))
    return (
        finding(
            "poor-fit",
            f"{what} misses the measured throughput by {100 * misfit:.0f} % at "
            f"{fit.measured.level[worst]:g}",
            misfit_share=misfit,
            at=float(fit.measured.level[worst]),
        ),
    )


def _outdone(law: CurveFit, curve: CurveFit) -> tuple[Finding, ...]:
    """The law against a corner of any sharpness with as many parameters: clearly worse means that
    it does not hold.
    """
    if _rms(law) <= _MISFIT_RMS or law.freedom < 1 or fall_observed(law):
        return ()
    # both have as many parameters: the difference of Akaike's criteria, with the small-sample
    # factor of `_EVIDENCE`
    if _deviance(law) - _deviance(curve) <= _EVIDENCE * len(law.measured.level) / law.freedom:
        return ()
    return (
        finding(
            "poor-fit",
            f"the Universal Scalability Law misses the series by {100 * _rms(law):.1f} % on "
            "average, "
            f"a corner of asymptotes by {100 * _rms(curve):.1f} %",
            law_rms=_rms(law),
            asymptotes_rms=_rms(curve),
        ),
    )


def _deviance(fit: CurveFit) -> float:
    """-2 log likelihood of the residuals (but for a constant), under the noise that this curve
    leaves: what it misses is noise to it.
    """
    return float((fit.residual**2 / fit.sigma**2 + 2 * np.log(fit.sigma)).sum())


def _step_finding(step: StepChange | None, measured: Measured) -> tuple[Finding, ...]:
    if step is None:
        return ()
    alone = (
        "before it"
        if step.at == measured.level[1]
        else "from there on"
        if step.at == measured.level[-1]
        else ""
    )
    doubt = (
        f"; with a single level {alone} it may also be an odd measurement: measure more levels"
        if alone
        else ""
    )
    return (
        finding(
            "step",
            f"throughput changes by a factor of {step.ratio:.2f} against the trend at "
            f"{step.at:g}{doubt}",
            at=step.at,
            ratio=step.ratio,
        ),
    )


def _fall(measured: Measured, usl: Usl | None) -> tuple[Finding, ...]:
    """The largest level against the best one: beyond 3 % and three standard errors (or by the law's
    own interval).
    """
    peak = int(measured.throughput.argmax())
    top = len(measured.level) - 1
    if peak == top:
        return ()
    drop = float(1 - measured.throughput[top] / measured.throughput[peak])
    noise = (
        math.hypot(measured.error[peak], measured.error[top])
        if measured.errors_known
        else math.sqrt(2) * local_noise(measured)
    )
    by_law = (
        usl is not None and usl.n_peak.high is not None and usl.n_peak.high < measured.level[top]
    )
    if drop <= _FALL or not (by_law or -math.log1p(-drop) > _SIGMAS * noise):
        return ()
    at, last = float(measured.level[peak]), float(measured.level[top])
    return (
        finding(
            "falls-after-peak",
            f"throughput peaks at {at:g} and is {100 * drop:.1f} % lower at {last:g}",
            peak_at=at,
            drop_share=drop,
            largest_level=last,
        ),
    )
