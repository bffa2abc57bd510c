"""What holds a window back: trust first, then the largest disjoint share, with its evidence
(docs/metrics.md#verdict).

Shares of the window: idle, exposed communication, exposed copies, kernel time that leaves more than
half of the compute units empty, and the kernel time that fills them, split into what runs at the
compute ceiling, at the bandwidth ceiling, at neither (inside-kernel), what no ceiling judges
(undetermined), and kernels of unknown work (kernels).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from profharness.analysis.kernels.ceilings import REACHED
from profharness.analysis.power.clock_caps import clock_caps
from profharness.analysis.records import Figure, Partition
from profharness.analysis.verdict.above_peak import impossible
from profharness.analysis.verdict.cpu import Withheld, cpu_verdict
from profharness.analysis.verdict.cpu import value_of as _value
from profharness.analysis.verdict.evidence import (
    bound_of,
    evidence_of,
    few_text,
    known_cause,
)
from profharness.analysis.verdict.records import Grounds, KernelParts, Verdict
from profharness.analysis.verdict.wording import NOT_KNOWN, verdict_of
from profharness.findings import Finding, ways
from profharness.units import format_share, format_share_range

UNTRUSTWORTHY = frozenset(
    {
        "impossible-figures",
        "empty-trace",
        "kernels-missing",
        "graph-kernels-missing",
        "steps-without-device-events",
        "truncated-file",
        "events-dropped",
        "idle-contradicted",
        "hook-not-loaded",
        "clock-stepped",
    }
)
NOTHING_MEASURED = f"kernels of a device ({ways.KERNELS}), or samples of the CPU (--telemetry)"
HOST_CALLS = f"host calls ({ways.CALLS})"
ALL_WORK = (
    "all work of the device (a capture that begins before it, without a filter and with every "
    "process on it), or the device's telemetry of the same time"
)
"""What it takes where the largest part may be work that is not in the file."""
_SAYS = {
    "compute": "saturated",
    "bandwidth": "saturated",
    "kernels": "not known",
    "undetermined": "not known",
}
"""What a part says of the device; every other one that it is not saturated."""
NOTABLE_LOSS = 0.01
_LOSSES = ("idle", "communication", "copy", "underfilled")


@dataclass(frozen=True)
class Judgement:
    """A verdict, or in `needs` what it would take; and the partition that it stands on, None where
    no device work has times.
    """

    verdict: Verdict | None
    needs: str
    partition: Partition | None


def judge(
    partition: Partition | None,
    figures: Mapping[str, Figure],
    findings: Sequence[Finding],
    grounds: Grounds | None = None,
) -> Judgement:
    """The verdict on a window, by its partition, figures and findings, and what else the records
    say.

    Without device work (`partition` None or empty) the CPU is judged, by `cores_used` of
    `cores_allowed`; where the records carry no verdict on a device, nothing is.
    """
    grounds = Grounds() if grounds is None else grounds
    settled = None if partition is None else _settled(partition, figures)
    broken = [item for item in findings if item.severity == "error" and item.id in UNTRUSTWORTHY]
    if broken:
        return Judgement(None, f"a complete trace, as {broken[0].message}", settled)
    if grounds.withheld:
        return Judgement(None, grounds.withheld, settled)
    if settled is None or not settled.window_ns:
        return _of_cpu(figures, findings, partition)
    return _of_device(settled, figures, grounds)


def verdict(
    partition: Partition | None,
    figures: Mapping[str, Figure],
    findings: Sequence[Finding],
    grounds: Grounds | None = None,
) -> Verdict | None:
    """The verdict of `judge` alone."""
    return judge(partition, figures, findings, grounds).verdict


def _settled(partition: Partition, figures: Mapping[str, Figure]) -> Partition:
    """The partition with its kernel time by what holds it back.

    Where no kernel could be judged, the window's own FLOP/s and bytes per second may still show
    that all of it, taken together, runs at a ceiling.
    """
    parts = partition.kernel_parts or KernelParts(unknown_work_ns=partition.compute_ns)
    left = parts.undetermined_ns + parts.unknown_work_ns
    judged = parts.compute_bound_ns + parts.bandwidth_bound_ns + parts.inside_kernel_ns
    at = None if judged or not left else _at_ceiling(figures, left / partition.window_ns)
    if at is not None:
        parts = KernelParts(
            underfilled_ns=parts.underfilled_ns,
            compute_bound_ns=left if at == "compute" else 0,
            bandwidth_bound_ns=left if at == "bandwidth" else 0,
        )
    return msgspec.structs.replace(partition, kernel_parts=parts)


def _at_ceiling(figures: Mapping[str, Figure], during: float) -> str | None:
    """The ceiling that the window's rates reach in the share `during` of it, the higher one of two;
    none by a rate that cannot be.
    """
    if impossible("flops_of_ceiling", figures.get("flops_of_ceiling")):
        return None
    cached = impossible("bandwidth_share", figures.get("bandwidth_share"))
    compute, bandwidth = (
        _least(figures, "flops_of_ceiling"),
        0.0 if cached else _least(figures, "bandwidth_share"),
    )
    if during <= 0 or max(compute, bandwidth) < REACHED * during:
        return None
    return "compute" if compute >= bandwidth else "bandwidth"


def _least(figures: Mapping[str, Figure], name: str) -> float:
    """The figure's value, or the lower end of what it can be; 0 where it is not measured."""
    figure = figures.get(name)
    return 0.0 if figure is None else figure.least or 0.0


def times_by_kind(partition: Partition) -> dict[str, int]:
    """The ns of each part under the kind that names it, idle time of all causes as one; with
    `idle_or_not_recorded_ns` they sum to the window. Losses come first, so that they win where two
    parts are equal.
    """
    parts = partition.kernel_parts or KernelParts(unknown_work_ns=partition.compute_ns)
    return {
        "idle": partition.idle_ns,
        "communication": partition.exposed_communication_ns,
        "copy": partition.exposed_copy_ns,
        "underfilled": parts.underfilled_ns,
        "compute": parts.compute_bound_ns,
        "bandwidth": parts.bandwidth_bound_ns,
        "inside-kernel": parts.inside_kernel_ns,
        "undetermined": parts.undetermined_ns,
        "kernels": parts.unknown_work_ns,
    }


def largest_part(partition: Partition) -> str:
    """The key of `times_by_kind` with most time."""
    times = times_by_kind(partition)
    return max(times, key=lambda name: times[name])


def _same_at_both_ends(partition: Partition) -> bool:
    """Whether it says the same of saturated or not if all that is not known were idle time, and if
    all of it were work, of which nobody knows what limits it.
    """
    said = []
    for name in ("idle", "kernels"):
        times = times_by_kind(partition)
        times[name] += partition.open_ns
        said.append(_SAYS.get(max(times, key=lambda part: times[part]), "not saturated"))
    return said[0] == said[1]


def _of_device(partition: Partition, figures: Mapping[str, Figure], grounds: Grounds) -> Judgement:
    if not _same_at_both_ends(partition):
        return Judgement(None, f"{ALL_WORK}, as {partition.why_open}", partition)
    window, times = partition.window_ns, times_by_kind(partition)
    part = largest_part(partition)
    share = times[part] / window
    evidence = evidence_of(part, times[part], partition, figures, grounds)
    if part == "idle" and not grounds.host_calls:
        return Judgement(
            None, f"{HOST_CALLS}, as {evidence} and nothing in the file says why", partition
        )
    if part == "idle" and grounds.start_up:
        return Judgement(None, grounds.start_up, partition)
    kind = part if part != "idle" else known_cause(partition) or "undetermined"
    bound = None
    if kind in NOT_KNOWN:
        evidence += _largest_loss(part, partition, figures, grounds)
    else:
        bound = bound_of(part, times[part], partition, grounds)
    most = 1 - times["idle"] / window
    least = most - partition.open_ns / window
    caps = () if part == "idle" else clock_caps(figures, least)
    unknown = partition.why_open
    clauses = "; ".join(
        clause for clause in (evidence, unknown, few_text(grounds), *caps) if clause
    )
    opening = _opening(part, format_share_range(least, most))
    said = verdict_of(kind, share, clauses, bound, opening, in_part=bool(unknown))
    if kind == "kernels" and not grounds.torch:
        said = msgspec.structs.replace(said, counters_first=True)
    return Judgement(said, "", partition)


def _opening(part: str, busy: str) -> str:
    """What the kind alone does not say: an idle device is not saturated, whatever the cause."""
    if part in NOT_KNOWN:
        return f"Busy {busy} of the time, and whether saturated then is not known"
    return "Not saturated" if part == "idle" else ""


def _largest_loss(
    part: str, partition: Partition, figures: Mapping[str, Figure], grounds: Grounds
) -> str:
    """What is lost beside the largest part, where that is worth a clause."""
    times = times_by_kind(partition)
    loss = max(_LOSSES, key=lambda name: times[name])
    if part in _LOSSES or times[loss] < NOTABLE_LOSS * partition.window_ns:
        return ""
    bound = bound_of(loss, times[loss], partition, grounds)
    gain = "" if bound is None else f" (removing it gains at most {bound:.2f}x)"
    return (
        f"; the largest loss: {evidence_of(loss, times[loss], partition, figures, grounds)}{gain}"
    )


def _of_cpu(
    figures: Mapping[str, Figure], findings: Sequence[Finding], partition: Partition | None
) -> Judgement:
    """A ceiling that the CPU reaches, else what its cores say."""
    used, allowed = _value(figures, "cores_used"), _value(figures, "cores_allowed")
    at = _at_ceiling(figures, 1.0)
    if at is None or used is None or not allowed:
        found = cpu_verdict(figures, findings)
        if found is None:
            return Judgement(None, NOTHING_MEASURED, partition)
        return (
            Judgement(None, found.needs, partition)
            if isinstance(found, Withheld)
            else Judgement(found, "", partition)
        )
    share = _least(figures, "flops_of_ceiling" if at == "compute" else "bandwidth_share")
    roof = "the measured GEMM" if at == "compute" else "the measured copy"
    evidence = (
        f"{format_share(share)} of {roof}; the process ran on {used:.1f} of "
        f"{allowed:g} allowed cores"
    )
    return Judgement(verdict_of(at, min(used / allowed, 1.0), evidence), "", partition)
