"""The curve of one series: fitted on the levels after a jump, with what speaks against the fit."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from profharness.analysis.curves.batch import BATCH, batch_curve
from profharness.analysis.curves.fit import (
    Copies,
    CurveFit,
    Measured,
    fit_curve,
    local_noise,
    refit_copies,
    without_odd_level,
)
from profharness.analysis.curves.jumps import find_step, impossible_rise
from profharness.analysis.curves.knee import (
    knee_of_asymptotes,
    knee_of_law,
    knee_of_points,
    widened,
)
from profharness.analysis.curves.records import BatchCurve, Knee, StepChange, Usl
from profharness.analysis.curves.usl import USL, fall_observed, usl_law
from profharness.findings import Finding, finding
from profharness.trace.scan_table import Axis

_WORST_MISFIT = 0.10


_SIGMAS = 3.0


_FALL = 0.03


# Akaike weights of 20 to 1 against the law, for series long enough to tell.
_EVIDENCE = 6.0


_MISFIT_RMS = 0.01


# Of each curve that only widens an interval.
_COPIES, _ROUGHLY = 200, 1e-5


NO_KNEE = Knee(n=None)


@dataclass(frozen=True)
class Fitted:
    """The curve figures of one series; absent where the data do not carry them."""

    batch: BatchCurve | None = None
    usl: Usl | None = None
    knee: Knee = NO_KNEE
    findings: tuple[Finding, ...] = ()


def analyse(
    measured: Measured, axis: Axis, seed: str, wrong: Mapping[float, str]
) -> tuple[StepChange | None, Fitted]:
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
        else _fit_concurrency(rest, seed, measured, jumped=step is not None)
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


def _fit_batch(measured: Measured, seed: str, wrong: Mapping[float, str]) -> Fitted:
    fit = fit_curve(BATCH, measured)
    if fit is None:
        return Fitted()
    curve = batch_curve(fit, seed)
    findings = [*_poor_fit(fit, "the curve T(b)", wrong)]
    open_ends = [
        name
        for name, estimate in (("t_max", curve.t_max), ("b_half", curve.b_half), ("b90", curve.b90))
        if None in (estimate.value, estimate.low, estimate.high)
    ]
    if open_ends:
        top = float(measured.level[-1])
        reached = (
            "90 % of the extrapolated maximum is not reached in this scan"
            if curve.b90.value is None and not findings
            else "the plateau is not bounded by this scan"
        )
        findings.append(
            finding(
                "peak-beyond-range",
                f"{reached} (largest level {top:g}): no upper end for {', '.join(open_ends)}",
                largest_level=top,
                open=", ".join(open_ends),
            )
        )
    return Fitted(
        batch=curve,
        knee=Knee(n=curve.b_half.value, low=curve.b_half.low, high=curve.b_half.high),
        findings=tuple(findings),
    )


def _fit_concurrency(measured: Measured, seed: str, whole: Measured, *, jumped: bool) -> Fitted:
    law, curve = fit_curve(USL, measured), fit_curve(BATCH, measured)
    if law is None or curve is None:
        return Fitted(knee=knee_of_points(measured))
    likely = _likely(
        [law, curve] if whole is measured else [fit_curve(USL, whole), fit_curve(BATCH, whole)],
        seed,
    )
    top = float(measured.level[-1])
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
        knee = widened(knee, likely, top)
        return Fitted(knee=knee, findings=(*poor, *_beyond(measured, None, knee)))
    copies = refit_copies(law, seed)
    spared = (one for one in likely if one[0].family is USL and one[0].measured is not measured)
    usl = usl_law(law, copies, next(spared, None))
    knee = knee_of_points(measured) if jumped else knee_of_law(law, copies)
    knee = widened(knee, likely, top)
    findings = [*_beyond(measured, usl, knee)]
    if usl.sigma.high is not None and usl.sigma.high < 0:
        findings.append(
            finding(
                "superlinear",
                f"sigma is {usl.sigma.value:.3g} (95 % below {usl.sigma.high:.3g}): "
                "each client gains from the others",
                sigma=float(usl.sigma.value or 0),
            )
        )
    return Fitted(usl=usl, knee=knee, findings=tuple(findings))


def _likely(fits: Sequence[CurveFit | None], seed: str) -> tuple[tuple[CurveFit, Copies], ...]:
    """The curves through the levels that no other one clearly outdoes, with all levels and, where
    none explains these, without the one that is odd; each with noisy copies of it.
    """
    whole = [fit for fit in fits if fit is not None]
    spared: list[CurveFit] = []
    if all(fit.scatters for fit in whole):
        spared = [fit for fit in map(without_odd_level, whole) if fit is not None]
    likely = []
    for group in (whole, spared):
        sound = [fit for fit in group if not _poor_fit(fit, "")]
        least = min(map(_deviance, sound), default=0.0)
        likely += [
            fit
            for fit in sound
            if _rms(fit) <= _MISFIT_RMS
            or fit.freedom < 1
            or _deviance(fit) - least <= _EVIDENCE * len(fit.measured.level) / fit.freedom
        ]
    return tuple((fit, refit_copies(fit, seed, _COPIES, _ROUGHLY)) for fit in likely)


def _beyond(measured: Measured, usl: Usl | None, knee: Knee) -> tuple[Finding, ...]:
    """The finding for ends that the scan does not bound."""
    ends: list[Any] = [knee.n, knee.low, knee.high]
    names = ["knee"] if None in ends else []
    if usl is not None:
        names += [
            name
            for name, estimate in (("lambda", usl.lambda_), ("n_peak", usl.n_peak))
            if None in (estimate.value, estimate.low, estimate.high)
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


def _poor_fit(fit: CurveFit, curve_name: str, wrong: Container[float] = ()) -> tuple[Finding, ...]:
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
            f"{curve_name} misses the measured throughput by {100 * misfit:.0f} % at "
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


def step_finding(step: StepChange | None, measured: Measured) -> tuple[Finding, ...]:
    """The finding on a jump of throughput between two levels; none without a jump."""
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


def within_peak(fitted: Fitted, fall: Finding, measured: Measured) -> Fitted:
    """The curve figures of a series that falls after its peak: the knee is no further than the
    peak, and nothing advises to go beyond it, whatever the curve leaves open. A curve that only
    rises does not describe it where its maximum lies below the peak.
    """
    peak = float(fall.figures["peak_at"])
    ends = (fitted.knee.n, fitted.knee.low, fitted.knee.high)
    knee, low, high = (None if end is None else min(end, peak) for end in ends)
    return replace(
        fitted,
        knee=Knee(n=knee, low=low, high=high),
        findings=tuple(
            msgspec.structs.replace(item, advice=f"measure more levels around the peak at {peak:g}")
            if item.id == "peak-beyond-range"
            else item
            for item in (*fitted.findings, *_surpassed(fitted, peak, measured))
        ),
    )


def _surpassed(fitted: Fitted, peak: float, measured: Measured) -> tuple[Finding, ...]:
    """The finding on a curve over the batch size whose maximum the measured peak exceeds by more
    than 3 %; none where the fit is marked already.
    """
    if fitted.batch is None or any(item.id == "poor-fit" for item in fitted.findings):
        return ()
    largest = fitted.batch.t_max.value
    best = float(measured.throughput[measured.level == peak].max())
    if not largest or best <= (1 + _FALL) * largest:
        return ()
    return (
        finding(
            "poor-fit",
            f"the curve T(b) tends to a throughput of {largest:.4g}, and "
            f"{100 * (best / largest - 1):.0f} % more were measured at {peak:g}",
            misfit_share=best / largest - 1,
            at=peak,
        ),
    )


def fall_finding(measured: Measured, usl: Usl | None) -> tuple[Finding, ...]:
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
    lost = -math.log1p(-drop) if drop < 1 else math.inf  # 1 where hardly anything is left
    if drop <= _FALL or not (by_law or lost > _SIGMAS * noise):
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
