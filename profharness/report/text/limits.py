"""Words for what limits a window: the limiter of a verdict, the causes of idle time, and what to
try.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import IdleCauses, Partition, Verdict
from profharness.units import format_number, format_share


@dataclass(frozen=True)
class Limit:
    """`label` for tables, `clause` for sentences with the share and the device's word, `advice` to
    follow "Try".
    """

    label: str
    clause: str
    advice: str


IDLE_CAUSES: dict[str, Limit] = {
    "host_not_ready_ns": Limit(
        "host not ready",
        "{share} of the time the {device} waits for the host to have the next work ready",
        "prefetching in the data loader, fewer Python steps between launches, or torch.compile",
    ),
    "launch_in_progress_ns": Limit(
        "launches",
        "{share} of the time the {device} waits for kernel launches",
        "device graphs (HIP or CUDA graphs), torch.compile",
    ),
    "synchronisation_ns": Limit(
        "synchronisation",
        "{share} of the time the host sits in a synchronisation call with nothing queued",
        "removing .item(), .cpu() and explicit synchronisation from the loop",
    ),
    "waiting_copy_or_event_ns": Limit(
        "waiting on copies or events",
        "{share} of the time the {device} waits for a copy or an event",
        "pinned memory with non_blocking copies on a stream of their own",
    ),
    "queued_gap_ns": Limit(
        "queued gaps",
        "{share} of the time kernels are queued, yet the {device} pauses between them",
        "fewer, larger kernels: fusion or a larger batch",
    ),
    "no_host_record_ns": Limit(
        "no host record",
        "{share} of the time the {device} is idle, and the trace does not say what the host did",
        "--hip-trace (or --profile torch), so that the host's calls are in the trace",
    ),
}

_HOST_SIDE = tuple(
    IDLE_CAUSES[name]
    for name in ("host_not_ready_ns", "launch_in_progress_ns", "synchronisation_ns")
)

LIMITERS: dict[str, Limit] = {
    "idle": Limit(
        "idle", "{share} of the time the {device} is idle", "a larger batch, or more work in flight"
    ),
    "communication": Limit(
        "communication",
        "{share} of the time the {device} waits for collectives",
        "overlapping collectives with compute: larger buckets, or fewer ranks per model",
    ),
    "copy": Limit(
        "copies",
        "{share} of the time the {device} waits for copies",
        "pinned memory with non_blocking copies, or keeping inputs on the device",
    ),
    "underfilled": Limit(
        "underfilled",
        "{share} of the time kernels run that leave more than half of the compute units empty",
        "a larger batch, fusion, or several streams or processes on this device",
    ),
    "compute": Limit(
        "compute",
        "{share} of the time kernels run at the compute ceiling",
        "a lower precision, or a smaller model: the units are full",
    ),
    "bandwidth": Limit(
        "bandwidth",
        "{share} of the time kernels run at the memory's ceiling",
        "fusing elementwise work, or a narrower data type",
    ),
    "inside-kernel": Limit(
        "inside kernels",
        "{share} of the time kernels fill the device but reach neither ceiling",
        "a hardware counter pass on the top kernels (--pmc): latency, LDS, gathers or atomics",
    ),
    "undetermined": Limit(
        "undetermined",
        "{share} of the time kernels run, by compute or by bandwidth is not measured",
        "--pmc, or `profharness calibrate` and --flops-per-item, to tell compute from bandwidth",
    ),
}

CPU_LIMITERS: dict[str, Limit] = {
    "idle": Limit(
        "cores idle",
        "{share} of the allowed cores are idle",
        "more threads (OMP_NUM_THREADS), several processes",
    ),
    "undetermined": Limit(
        "cores busy",
        "{share} of the allowed cores are busy",
        "the operations at the top of the hotspots",
    ),
}


def largest_cause(partition: Partition | None) -> tuple[Limit, int] | None:
    """The idle cause with most time and its ns, where the partition splits its idle time."""
    if partition is None or partition.idle_causes is None:
        return None
    name, ns = max(cause_times(partition.idle_causes), key=lambda pair: pair[1])
    return (IDLE_CAUSES[name], ns) if ns else None


def cause_times(causes: IdleCauses) -> tuple[tuple[str, int], ...]:
    """Each idle cause's field name and ns, in the order of docs/metrics.md#idle-causes as the table
    above lists them.
    """
    return tuple((name, getattr(causes, name)) for name in IDLE_CAUSES)


def limit_of(verdict: Verdict, partition: Partition | None) -> Limit:
    """The words for a verdict. Idle speaks of its largest cause when that is at least half of the
    idle time.

    Without device work in the window (no partition) idle and undetermined are judgements on the
    CPU's cores.
    """
    if partition is None or not partition.window_ns:
        return CPU_LIMITERS.get(verdict.limiter) or LIMITERS.get(
            verdict.limiter, LIMITERS["undetermined"]
        )
    if verdict.limiter == "idle":
        cause = largest_cause(partition)
        if cause is not None and 2 * cause[1] >= partition.idle_ns:
            return cause[0]
    return LIMITERS.get(verdict.limiter, LIMITERS["undetermined"])


def share_of(verdict: Verdict, partition: Partition | None) -> float:
    """The share that `limit_of` speaks of: of idle time the largest cause's part, where that is
    named.
    """
    cause = largest_cause(partition)
    if partition is not None and cause is not None and limit_of(verdict, partition) is cause[0]:
        return cause[1] / partition.window_ns
    return verdict.share


def clause_of(verdict: Verdict, partition: Partition | None, device: str) -> str:
    """`78 % of the time the GPU waits for kernel launches`: the verdict within a sentence."""
    return limit_of(verdict, partition).clause.format(
        share=format_share(share_of(verdict, partition), 0), device=device
    )


def short_verdict(verdict: Verdict | None, partition: Partition | None) -> str:
    """One cell: `host: launches (78 % of the time)`, `bandwidth: gathers at 71 % of the measured
    copy`.

    Of a withheld one the reason stands below the table (`columns.withheld`).
    """
    if verdict is None:
        return ""
    if not verdict.trusted:
        return "no verdict"
    if verdict.limiter == "none":
        return verdict.evidence or "nothing stands out"
    limit, share = limit_of(verdict, partition), format_share(share_of(verdict, partition), 0)
    if limit in CPU_LIMITERS.values():
        return f"{limit.label} ({share})"
    if verdict.limiter == "idle" or not verdict.evidence:
        side = (
            "host: " if limit in _HOST_SIDE else "idle: " if limit in IDLE_CAUSES.values() else ""
        )
        return f"{side}{limit.label} ({share} of the time)"
    return f"{limit.label}: {verdict.evidence.partition(';')[0]}"


def full_verdict(verdict: Verdict | None, partition: Partition | None) -> str:
    """One sentence for a whole window: what limits it, the evidence, and the bound on the gain."""
    if verdict is None or not verdict.trusted or verdict.limiter == "none":
        return (
            verdict.evidence
            if verdict is not None and verdict.evidence
            else short_verdict(verdict, partition)
        )
    evidence = verdict.evidence.rstrip(".") or f"{format_share(verdict.share, 0)} of the time"
    return "; ".join(
        part
        for part in (f"{limit_of(verdict, partition).label}: {evidence}", headroom_text(verdict))
        if part
    )


def headroom_text(verdict: Verdict) -> str:
    """`without it the work would run at most 1.28 times as fast`, where the verdict bounds it; of
    idle time the bound is for all of it.
    """
    if verdict.headroom is None:
        return ""
    condition = "without any idle time" if verdict.limiter == "idle" else "without it"
    return (
        f"{condition} the work would run at most "
        f"{format_number(verdict.headroom, 2 if verdict.headroom < 10 else 0)} times as fast"
    )
