"""What the CPU says where no device works: cores used of those that the process could have had
(docs/metrics.md#cpu-verdict).

Idle cores are claimed only where nothing else explains them: not other work on the node, not a CPU
quota, not a process that sleeps or waits for input. What others used of the node is taken off the
allowed cores, as if all of it ran there; so free cores are never overstated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profharness.analysis.records import Figure
from profharness.analysis.run.checks import OTHERS, THROTTLED, alone, waiting_share
from profharness.analysis.verdict.records import Verdict
from profharness.analysis.verdict.wording import verdict_of
from profharness.findings import Finding
from profharness.units import format_ns, format_share

BUSY = 0.9
ONE_CORE = 0.9  # below this the process itself pauses: more threads would pause with it
HALF_A_CORE = 0.5  # a process that wants less would sleep on a quiet node too
MOSTLY = 0.8  # of what others used
HALF = 0.5  # of the free cores: below it they are called idle
SHORTEST_NS = 1_000_000_000
TENTH = 0.1  # cores below it are said with two digits
NOISE = 0.03
"""What the mean of cores may be off by, as a share of it, where no interval was computed."""
CORES_BUSY, CORES_IDLE = "Cores busy", "Cores idle"
HALF_BUSY, ONE_BUSY = "About half of the cores busy", "About one core busy"
"""What is said where the interval of the measurement holds the limit between two words."""
QUIET_NODE = "a quiet node"
"""How the needs of a verdict begin that other work kept from being made."""
_PACED = ("steps_per_second", "throughput")


@dataclass(frozen=True)
class Withheld:
    """No verdict on the cores, and what it would take."""

    needs: str


def cpu_verdict(
    figures: Mapping[str, Figure], findings: Sequence[Finding]
) -> Verdict | Withheld | None:
    """By `cores_used` of `cores_allowed`; None where these are not known.

    The kind is undetermined (the cores are busy), communication, idle-cores, or idle-waiting where
    the process itself waits; it is withheld where the time was too short or other work held the
    cores. A bound on the gain needs steps or points.
    """
    used, allowed = value_of(figures, "cores_used"), value_of(figures, "cores_allowed")
    if used is None or not allowed:
        return None
    evidence = _evidence(figures, used)
    if used / allowed >= BUSY:
        return verdict_of(
            "undetermined",
            min(used / allowed, 1.0),
            f"{evidence}; whether by compute or by bandwidth is not measured",
            opening=CORES_BUSY,
        )
    sleeps = wanted_cores(figures) < HALF_A_CORE
    why = _too_short(figures) or ("" if sleeps else _held(figures, findings, used, allowed))
    if why:
        return Withheld(f"{why}; {evidence}")
    return _of_what_is_left(figures, findings, used, allowed - _others(figures, used))


def _of_what_is_left(
    figures: Mapping[str, Figure], findings: Sequence[Finding], used: float, free: float
) -> Verdict:
    """Of a process that could have had more cores, `free` with its own."""
    evidence = _evidence(figures, used)
    talking = _waiting_for_ranks(findings)
    if talking >= 0.5:
        return verdict_of(
            "communication",
            talking,
            f"its ranks wait {format_share(talking)} of the time in collectives with nothing to "
            f"compute; {evidence}",
            1 / (1 - talking) if talking < 1 and _paced(figures) else None,
        )
    low, high = _interval(figures, used)
    for limit, opening in ((ONE_CORE, ONE_BUSY), (HALF * free, HALF_BUSY)):
        if low < limit <= high:
            return _between(used, free, evidence, opening, paced=_paced(figures))
    if used < ONE_CORE:
        return verdict_of(
            "idle-waiting",
            1 - min(used, 1.0),
            "for input, output, a timer or another process: "
            + evidence.replace("the process ran on", "it ran on"),
            opening="The process waits",
        )
    return _of_free_cores(used, free, evidence, paced=_paced(figures))


def _waiting_for_ranks(findings: Sequence[Finding]) -> float:
    """The share of the time in which collectives ran and nothing else; 0 where it is small."""
    return max(
        (
            float(item.figures["exposed_share"])
            for item in findings
            if item.id == "exposed-communication"
        ),
        default=0.0,
    )


def _paced(figures: Mapping[str, Figure]) -> bool:
    return any(value_of(figures, name) is not None for name in _PACED)


def _evidence(figures: Mapping[str, Figure], used: float) -> str:
    cores = f"{used:.1f}" if used == 0 or used >= TENTH else f"{used:.2g}"
    of_steps = " in its steps" if value_of(figures, "cores_used_steps") is not None else ""
    allowed = value_of(figures, "cores_allowed")
    return f"the process ran on {cores} of {allowed:g} allowed cores{of_steps}"


def _interval(figures: Mapping[str, Figure], used: float) -> tuple[float, float]:
    """The 95 % interval of the cores used: that of the figure, else what such a mean may be off
    by.
    """
    figure = figures["cores_used"]
    low, high = figure.low, figure.high
    return (
        used * (1 - NOISE) if low is None else min(low, used),
        used * (1 + NOISE) if high is None else max(high, used),
    )


def _between(used: float, free: float, evidence: str, opening: str, *, paced: bool) -> Verdict:
    busy = min(used / free, 1.0)
    gain = f"; using the others gains at most {1 / busy:.2f}x" if paced and busy < BUSY else ""
    return verdict_of("undetermined", busy, f"{evidence}{gain}", opening=opening)


def _of_free_cores(used: float, free: float, evidence: str, *, paced: bool) -> Verdict:
    busy = min(used / free, 1.0)
    if busy < HALF:
        return verdict_of(
            "idle-cores", 1 - busy, evidence, 1 / busy if paced else None, opening=CORES_IDLE
        )
    gain = f"; using the others gains at most {1 / busy:.2f}x" if paced else ""
    return verdict_of("undetermined", busy, f"{evidence}{gain}", opening=CORES_BUSY)


def _too_short(figures: Mapping[str, Figure]) -> str:
    sampled = value_of(figures, "cpu_sampled")
    return (
        f"a longer time, as less than {format_ns(SHORTEST_NS, 1)} was sampled "
        f"({format_ns(round(sampled))})"
        if sampled is not None and sampled < SHORTEST_NS
        else ""
    )


def _held(
    figures: Mapping[str, Figure], findings: Sequence[Finding], used: float, allowed: float
) -> str:
    """What a verdict would take where the process could not have had the other cores, and why;
    empty where it could.
    """
    stopped = value_of(figures, "cpu_throttled")
    if stopped is not None and stopped > THROTTLED:
        return (
            "a larger CPU quota, as that of its cgroup stopped the process "
            f"({format_share(stopped)} of the time)"
        )
    other_cores = _others(figures, used)
    if under_pressure(figures, findings) or used / (allowed - other_cores) >= BUSY:
        if alone(figures):
            return (
                "cores of its own, as it waited for cores although nothing else ran here (its own "
                "threads on the same cores, or a virtual machine's host)"
            )
        amount = f" ({other_cores:.1f} on average)" if other_cores >= OTHERS else ""
        if (
            other_cores >= OTHERS
            and (value_of(figures, "client_cores") or 0.0) >= MOSTLY * other_cores
        ):
            return (
                "a load from another machine (--url) or more cores, as the load generator held "
                f"the other cores{amount}"
            )
        return f"{QUIET_NODE}, as other work held the cores{amount}"
    return ""


def wanted_cores(figures: Mapping[str, Figure]) -> float:
    """Cores that the process ran on or waited for: what it would have used alone. Infinite where
    waiting was not measured.
    """
    used, waited = value_of(figures, "cores_used"), value_of(figures, "cpu_tree_wait")
    both_known = used is not None and waited is not None and waiting_share(figures) is not None
    return (used or 0.0) + (waited or 0.0) if both_known else math.inf


def under_pressure(figures: Mapping[str, Figure], findings: Sequence[Finding]) -> bool:
    """Whether the workload had to wait for the CPU: by its own figures, else by what was found over
    the whole run.
    """
    waited = waiting_share(figures)
    stopped = value_of(figures, "cpu_throttled")
    if waited is None:
        return any(item.id == "cpu-pressure" for item in findings)
    return waited > 0 or (stopped is not None and stopped > THROTTLED)


def _others(figures: Mapping[str, Figure], used: float) -> float:
    """Cores that other work took of the allowed ones: at most those that the process left."""
    node, allowed = value_of(figures, "cpu_node"), value_of(figures, "cores_allowed") or used
    return 0.0 if node is None else min(max(node - used, 0.0), max(allowed - used, 0.0))


def value_of(figures: Mapping[str, Figure], name: str) -> float | None:
    """The figure's value; None where it is absent or not measured."""
    figure = figures.get(name)
    return None if figure is None or figure.value is None else float(figure.value)
