"""The evidence of each kind of verdict in words, and when the bound on a gain holds
(docs/metrics.md#verdict).
"""

from __future__ import annotations

from collections.abc import Mapping

from profharness.analysis.records import Figure, IdleCauses, Partition
from profharness.analysis.verdict.cpu import value_of as _value
from profharness.analysis.verdict.records import Grounds
from profharness.findings import ways
from profharness.units import format_ns, format_share

HANDFUL = 10
"""Fewer kernels and copies than this make no bound: one more of them would change it."""
UNKNOWN_CAUSE = "no_host_record_ns"
CAUSES = {
    UNKNOWN_CAUSE: "no host record",
    "waiting_copy_or_event_ns": "waiting on a copy or an event",
    "queued_gap_ns": "gaps between queued kernels",
    "launch_in_progress_ns": "launches in progress",
    "synchronisation_ns": "the host in a synchronisation call",
    "host_not_ready_ns": "the host not ready",
}
_GROUPS = {
    "compute": "compute_bound",
    "bandwidth": "bandwidth_bound",
    "inside-kernel": "inside_kernel",
}
"""Kinds of kernel time by the figure that measures them; the figure's note is the evidence."""
_UNJUDGED = {
    "measured": f"at no ceiling by what is known: {ways.COUNTING_ON_AMD} tell the rest",
    "data sheet": (
        "not far enough below the data sheet to tell, or with one of FLOPs and bytes not known: "
        "`profharness calibrate` measures what a program can reach, "
        f"{ways.COUNTING_ON_AMD} the rest"
    ),
    "none": "and the ceilings of this device are not known: `profharness calibrate` measures them",
}
_CATEGORIES = 4


def kind_of_cause(field: str) -> str:
    """`idle-host-not-ready`: the kind of idle time whose cause is this field of `IdleCauses`."""
    return f"idle-{field.removesuffix('_ns').replace('_', '-')}"


def known_cause(partition: Partition) -> str | None:
    """The kind of the largest known cause of idle time; None where half of it or more has none."""
    causes = partition.idle_causes
    if causes is None or 2 * causes.no_host_record_ns >= partition.idle_ns:
        return None
    known = [field for field in CAUSES if field != UNKNOWN_CAUSE]
    return kind_of_cause(max(known, key=lambda field: int(getattr(causes, field))))


def bound_of(part: str, part_ns: int, partition: Partition, grounds: Grounds) -> float | None:
    """By which factor the work could at most run faster without this part: window / (window -
    part). None where one gap or a handful of kernels would make it, and where nothing else runs.
    """
    rest = partition.window_ns - part_ns
    few = grounds.records is not None and grounds.records < HANDFUL
    if not rest or few or (part == "idle" and _of_one_gap(partition, grounds)):
        return None
    return partition.window_ns / rest


def _of_one_gap(partition: Partition, grounds: Grounds) -> bool:
    return 2 * grounds.longest_gap_ns > partition.idle_ns


def evidence_of(
    part: str,
    part_ns: int,
    partition: Partition,
    figures: Mapping[str, Figure],
    grounds: Grounds,
) -> str:
    """A clause on a part (a key of `window.times_by_kind`) and its share of the window."""
    share, window = part_ns / partition.window_ns, partition.window_ns
    if part == "idle":
        causes = _named_causes(partition.idle_causes, window)
        return (
            f"the device is idle {format_share(share)} of the time"
            + (f" ({causes})" if causes and grounds.host_calls else "")
            + _one_gap(partition, grounds)
        )
    if part == "communication":
        whole = format_share(partition.communication_ns / window)
        return f"collectives run alone {format_share(share)} of the time (of {whole} in all)"
    if part == "copy":
        whole = format_share(partition.copy_ns / window)
        return f"copies run alone {format_share(share)} of the time (of {whole} in all)"
    if part == "underfilled":
        fill = _value(figures, "fill_busy")
        busy = "" if fill is None else f" (fill while busy {fill:.2f})"
        return (
            "kernels that leave more than half of the compute units empty run "
            f"{format_share(share)} of the time{busy}"
        )
    if part in _GROUPS:
        return _group_evidence(part, share, figures, partition)
    return _unjudged_evidence(part, share, figures, grounds)


def _group_evidence(
    kind: str, share: float, figures: Mapping[str, Figure], partition: Partition
) -> str:
    """The group's largest kernel; of a window judged as a whole, its rate against the ceiling."""
    figure = figures.get(_GROUPS[kind])
    if figure is not None and figure.least and figure.note:
        why = partition.why_open
        said = figure.note.partition(f"; {why}")[0] if why else figure.note
        return f"{said}; such kernels run {format_share(share)} of the time"
    rate, words = (
        ("flops_of_ceiling", "useful FLOP/s at {} of the ceiling")
        if kind == "compute"
        else ("bandwidth_share", "memory traffic at {} of the ceiling")
    )
    reached = figures.get(rate)
    least = 0.0 if reached is None else reached.least or 0.0
    return f"{words.format(format_share(least))}; kernels run {format_share(share)} of the time"


def _unjudged_evidence(
    part: str, share: float, figures: Mapping[str, Figure], grounds: Grounds
) -> str:
    """Kernels that fill the device and of which nobody can say whether they reach a ceiling."""
    fill = _value(figures, "fill_busy")
    verb = "run" if fill is None else "fill the device"
    measured = "" if fill is not None else " (how far they fill the device is not measured)"
    during = f"{verb} {format_share(share)} of the time{measured}"
    if part == "undetermined":
        return f"kernels of known work {during}, {_UNJUDGED[grounds.ceilings]}"
    remedy = f": {grounds.remedy}" if grounds.remedy else ""
    return f"kernels of unknown work{_categories(grounds)} {during}{remedy}"


def _categories(grounds: Grounds) -> str:
    """` (gemm 61.0 %, attention 20.0 % and others)`: shares of the time of such kernels."""
    total = sum(time.total_ns for time in grounds.unknown)
    if not total:
        return ""
    named = [
        f"{time.category} {format_share(time.total_ns / total)}"
        for time in grounds.unknown[:_CATEGORIES]
    ]
    more = " and others" if len(grounds.unknown) > _CATEGORIES else ""
    return f" ({', '.join(named)}{more})"


def _one_gap(partition: Partition, grounds: Grounds) -> str:
    """Said where most of the idle time is one gap: something that happened once, and not what each
    step costs.
    """
    gap = grounds.longest_gap_ns
    if not _of_one_gap(partition, grounds) or gap >= partition.idle_ns:
        return ""
    return f"; one gap of {format_ns(gap)} makes up {format_share(gap / partition.window_ns)}"


def few_text(grounds: Grounds) -> str:
    """`only 3 kernels and copies ran`, where a handful makes all of it."""
    if grounds.records is None or not 0 < grounds.records < HANDFUL:
        return ""
    return (
        "only one kernel or copy ran"
        if grounds.records == 1
        else f"only {grounds.records} kernels and copies ran"
    )


def _named_causes(causes: IdleCauses | None, window_ns: int) -> str:
    """The causes of idle time that matter, largest first: up to three, each at least a tenth of the
    largest.
    """
    if causes is None:
        return ""
    times = sorted(
        ((getattr(causes, field), words) for field, words in CAUSES.items()), reverse=True
    )
    kept = [(ns, words) for ns, words in times[:3] if ns and 10 * ns >= times[0][0]]
    return ", ".join(f"{words} {format_share(ns / window_ns)}" for ns, words in kept)
