"""What holds a window back: trust first, then the largest disjoint share, with its evidence
(docs/metrics.md#verdict).

Shares of the window: idle, exposed communication, exposed copies, kernel time that leaves more than
half of the compute units empty, and the kernel time that fills them, split into what runs at the
compute ceiling, at the bandwidth ceiling, at neither (inside-kernel), and what FLOPs and counters
say nothing of (undetermined).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profharness.analysis.kernels.ceilings import REACHED
from profharness.analysis.power.clock_caps import clock_caps
from profharness.analysis.records import Figure, IdleCauses, Partition, Verdict
from profharness.analysis.time.timeless import TIMELINE
from profharness.analysis.verdict.above_peak import impossible
from profharness.analysis.verdict.cpu import cpu_verdict
from profharness.analysis.verdict.cpu import value_of as _value
from profharness.findings import Finding
from profharness.units import format_ns, format_share

UNTRUSTWORTHY = frozenset(
    {
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
NOTABLE_LOSS = 0.01
_GROUPS = {
    "compute": "compute_bound",
    "bandwidth": "bandwidth_bound",
    "inside-kernel": "inside_kernel",
}
"""Parts of the filled time by the figure that measures them; the figure's note is the evidence."""

_CAUSES = {
    "no_host_record_ns": "no host record",
    "waiting_copy_or_event_ns": "waiting on a copy or an event",
    "queued_gap_ns": "gaps between queued kernels",
    "launch_in_progress_ns": "launches in progress",
    "synchronisation_ns": "the host in a synchronisation call",
    "host_not_ready_ns": "the host not ready",
}


def verdict(
    partition: Partition | None, figures: Mapping[str, Figure], findings: Sequence[Finding]
) -> Verdict | None:
    """The verdict on a window; None where nothing was measured that could give one.

    Without device work (`partition` None or empty) the CPU is judged, by `cores_used` of
    `cores_allowed`; where there is device work on no time axis, nothing is.
    """
    broken = [item for item in findings if item.severity == "error" and item.id in UNTRUSTWORTHY]
    if broken:
        return Verdict(
            limiter="none", share=0.0, evidence=f"no verdict: {broken[0].message}", trusted=False
        )
    if partition is None or not partition.window_ns:
        return None if _timeless(figures) else _of_cpu(figures, findings)
    return _of_device(partition, figures)


def _timeless(figures: Mapping[str, Figure]) -> bool:
    return any(figure.needs.startswith(TIMELINE) for figure in figures.values())


def _of_device(partition: Partition, figures: Mapping[str, Figure]) -> Verdict:
    window = partition.window_ns
    underfilled = min(_value(figures, "underfilled") or 0.0, partition.compute_ns / window)
    losses = {
        "idle": partition.idle_ns / window,
        "communication": partition.exposed_communication_ns / window,
        "copy": partition.exposed_copy_ns / window,
        "underfilled": underfilled,
    }
    shares = losses | _filled(partition.compute_ns / window - underfilled, figures)
    limiter = max(shares, key=lambda name: shares[name])
    evidence, headroom = _evidence(limiter, shares[limiter], partition, figures), None
    loss = max(losses, key=lambda name: losses[name])
    if limiter != "undetermined":
        headroom = _headroom(shares[limiter])
    elif losses[loss] >= NOTABLE_LOSS:
        evidence += (
            f"; the largest loss: {_evidence(loss, losses[loss], partition, figures)} "
            f"(removing it gains at most {1 / (1 - losses[loss]):.2f}x)"
        )
    caps = () if limiter == "idle" else clock_caps(figures, 1 - partition.idle_ns / window)
    return Verdict(
        limiter=limiter,
        share=shares[limiter],
        evidence="; ".join((evidence, *caps)),
        headroom=headroom,
    )


def _filled(whole: float, figures: Mapping[str, Figure]) -> dict[str, float]:
    """The time that fills the device by kernel group, what is left being undetermined.

    Where no kernel could be judged, the window's own FLOP/s and bytes per second may still show
    that all of it, taken together, runs at a ceiling.
    """
    by_limiter: dict[str, float] = {}
    left = whole
    for limiter, name in _GROUPS.items():
        by_limiter[limiter] = min(_value(figures, name) or 0.0, left)
        left -= by_limiter[limiter]
    at = _at_ceiling(figures, left)
    if at is not None and not any(by_limiter.values()):
        by_limiter[at], left = left, 0.0
    return by_limiter | {"undetermined": left}


def _at_ceiling(figures: Mapping[str, Figure], during: float) -> str | None:
    """The ceiling that the window's rates reach in the share `during` of it, the higher one of two;
    none by a rate that cannot be.
    """
    if impossible("flops_of_ceiling", figures.get("flops_of_ceiling")):
        return None
    cached = impossible("bandwidth_share", figures.get("bandwidth_share"))
    compute, bandwidth = (
        _value(figures, "flops_of_ceiling") or 0.0,
        0.0 if cached else _value(figures, "bandwidth_share") or 0.0,
    )
    if during <= 0 or max(compute, bandwidth) < REACHED * during:
        return None
    return "compute" if compute >= bandwidth else "bandwidth"


def _headroom(share: float) -> float | None:
    return 1 / (1 - share) if share < 1 else None


def _evidence(
    limiter: str, share: float, partition: Partition, figures: Mapping[str, Figure]
) -> str:
    if limiter == "idle":
        causes = _named_causes(partition.idle_causes, partition.window_ns)
        return (
            f"the device is idle {format_share(share)} of the time"
            + (f": {causes}" if causes else "")
            + _one_gap(partition, figures)
        )
    if limiter == "communication":
        whole = format_share(partition.communication_ns / partition.window_ns)
        return f"collectives run alone {format_share(share)} of the time (of {whole} in all)"
    if limiter == "copy":
        return (
            f"copies run alone {format_share(share)} of the time (of "
            f"{format_share(partition.copy_ns / partition.window_ns)} in all)"
        )
    if limiter in _GROUPS:
        return _group_evidence(limiter, share, figures)
    fill = _value(figures, "fill_busy")
    if limiter == "underfilled":
        return (
            "kernels that leave more than half of the compute units empty run "
            f"{format_share(share)} of the time (fill while busy {fill or 0.0:.2f})"
        )
    filled = (
        "kernels fill the device"
        if fill is not None
        else "kernels run (how far they fill the device is not measured)"
    )
    return (
        f"{filled} {format_share(share)} of the time; whether by compute or by bandwidth is "
        "not measured"
    )


def _group_evidence(limiter: str, share: float, figures: Mapping[str, Figure]) -> str:
    """The group's largest kernel; of a window judged as a whole, its rate against the ceiling."""
    figure = figures.get(_GROUPS[limiter])
    if figure is not None and figure.value and figure.note:
        return f"{figure.note}; such kernels run {format_share(share)} of the time"
    rate, words = (
        ("flops_of_ceiling", "useful FLOP/s at {} of the ceiling")
        if limiter == "compute"
        else ("bandwidth_share", "memory traffic at {} of the ceiling")
    )
    return (
        f"{words.format(format_share(_value(figures, rate) or 0.0))}; "
        f"kernels run {format_share(share)} of the time"
    )


def _one_gap(partition: Partition, figures: Mapping[str, Figure]) -> str:
    """Said where most of the idle time is one gap among others: something that happened once, and
    not what each step costs.
    """
    longest = _value(figures, "idle_longest_gap") or 0.0
    if not partition.idle_ns / 2 < longest < partition.idle_ns:
        return ""
    return (
        f"; one gap of {format_ns(longest)} makes up {format_share(longest / partition.window_ns)}"
    )


def _named_causes(causes: IdleCauses | None, window_ns: int) -> str:
    """The causes of idle time that matter, largest first: up to three, each at least a tenth of the
    largest.
    """
    if causes is None:
        return ""
    times = sorted(
        ((getattr(causes, field), words) for field, words in _CAUSES.items()), reverse=True
    )
    kept = [(ns, words) for ns, words in times[:3] if ns and 10 * ns >= times[0][0]]
    return ", ".join(f"{words} {format_share(ns / window_ns)}" for ns, words in kept)


def _of_cpu(figures: Mapping[str, Figure], findings: Sequence[Finding]) -> Verdict | None:
    """A ceiling that the CPU reaches, else what its cores say."""
    used, allowed = _value(figures, "cores_used"), _value(figures, "cores_allowed")
    at = _at_ceiling(figures, 1.0)
    if at is None or used is None or not allowed:
        return cpu_verdict(figures, findings)
    share = _value(figures, "flops_of_ceiling" if at == "compute" else "bandwidth_share") or 0.0
    roof = "the measured GEMM" if at == "compute" else "the measured copy"
    return Verdict(
        limiter=at,
        share=min(used / allowed, 1.0),
        evidence=(
            f"{format_share(share)} of {roof}; the process ran on {used:.1f} of "
            f"{allowed:g} allowed cores"
        ),
    )
