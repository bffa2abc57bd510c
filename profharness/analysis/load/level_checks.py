"""What published columns give away about the trials behind them: warm-up in the mean, odd trials,
missing synchronisation.

With throughput T = mean(s/t) and latency L = mean(t) over the same trials, T L / s is 1 for equal
trials and 1 + CV^2 for evenly scattered ones (CV the relative scatter of t). Trials far from the
rest break the balance of the two relative standard errors: a slow trial weighs on L, a fast one on
T. The identity 1 - s/(T L) = -corr(t, 1/t) * n * e_T * e_L also bounds the number of trials n from
below, so n need not be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from profharness.findings import Finding, finding

MATERIAL = 0.01
# The two standard errors of evenly scattered trials agree; their ratio's logarithm has a standard
# deviation of sqrt(6 e_T e_L) (sampling error of the skewness of log t), of which four are asked
# for, and a factor of two.
_SIGMAS = 4.0
_VAST = 1e12
_LOPSIDED = 2.0
# One trial that takes ten times as long as the rest is a compilation or a first touch, not a
# disturbance.
_WARMUP_SLOWDOWN = 10.0
# Without standard errors: no scatter of trials that anyone would publish gives this.
_BLATANT = 1.5


@dataclass(frozen=True)
class Level:
    """One published level. `error_t` and `error_l` are relative standard errors of throughput and
    latency, None if not given.
    """

    at: float
    consistency: float
    error_t: float | None
    error_l: float | None


@dataclass(frozen=True)
class Diagnosis:
    """What one level's columns say: a finding id, and the slowdown of the odd trial where it is one
    trial.
    """

    kind: str
    at: float
    consistency: float
    slowdown: float | None = None


def diagnose(level: Level) -> Diagnosis | None:
    """The finding of one level, or None where the columns agree with evenly scattered trials within
    1 %.
    """
    excess = level.consistency - 1
    if excess <= MATERIAL:
        return None
    if not level.error_t or not level.error_l:
        return (
            Diagnosis("warmup-leak", level.at, level.consistency)
            if level.consistency > _BLATANT
            else None
        )
    quiet, loud = sorted((level.error_t, level.error_l))
    lopsided = loud / quiet
    # Even scatter as large as the quieter side shows explains the share quiet / loud of the excess.
    unexplained = excess * (1 - quiet / loud)
    chance = _SIGMAS * math.sqrt(6 * quiet * loud)
    if unexplained <= MATERIAL or math.log(lopsided) <= max(
        math.log(_LOPSIDED), min(chance, math.log(_WARMUP_SLOWDOWN))
    ):
        return None
    if level.error_t > level.error_l:
        return Diagnosis("missing-sync", level.at, level.consistency)
    slowdown = _slowdown(excess, level.consistency, level.error_t * level.error_l)
    return Diagnosis(
        "warmup-leak" if slowdown >= _WARMUP_SLOWDOWN else "outlier-trial",
        level.at,
        level.consistency,
        slowdown,
    )


def _slowdown(excess: float, consistency: float, errors: float) -> float:
    """How many times the others' length the odd trial took, were it one alone.

    One trial of k times the length among n equal ones gives T L / s - 1 = (k - 1)^2 / k * (n - 1) /
    n^2, with n from the identity above.
    """
    trials = max(excess / consistency / errors, 2.0)
    if trials * excess > _VAST:  # the square of a number that no scan gives may be none
        return trials * excess
    ratio = excess * trials**2 / (trials - 1)
    return (2 + ratio + math.sqrt((2 + ratio) ** 2 - 4)) / 2


def level_findings(levels: Iterable[Level]) -> tuple[Finding, ...]:
    """One finding per kind over a series, each naming its levels."""
    diagnoses = [result for result in map(diagnose, levels) if result]
    grouped = {
        kind: [diagnosis for diagnosis in diagnoses if diagnosis.kind == kind]
        for kind in ("missing-sync", "warmup-leak", "outlier-trial")
    }
    return tuple(_finding(kind, group) for kind, group in grouped.items() if group)


def _finding(kind: str, group: list[Diagnosis]) -> Finding:
    levels = ", ".join(f"{diagnosis.at:g}" for diagnosis in group)
    worst = max(group, key=lambda diagnosis: diagnosis.consistency)
    low = min(diagnosis.consistency for diagnosis in group)
    spread = (
        f"{low:.3g} to {worst.consistency:.3g}" if len(group) > 1 else f"{worst.consistency:.3g}"
    )
    text = {
        "missing-sync": (
            "a few trials end far too early and raise the mean: "
            "the timer stops before the device does"
        ),
        "warmup-leak": "a trial of many times the others' length is in the mean latency",
        "outlier-trial": "a slow trial is in the mean latency",
    }[kind]
    group_finding = finding(
        kind,
        f"at {levels}: throughput x latency / batch is {spread}, 1 expected; {text}",
        levels=levels,
        consistency_max=worst.consistency,
        consistency_min=low,
    )
    if worst.slowdown is None:
        return group_finding
    return msgspec.structs.replace(
        group_finding, figures={**group_finding.figures, "slowdown_of_one_trial": worst.slowdown}
    )
