"""Words for what limits a window: the limiter of a verdict, the causes of idle time, and what to try."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import IdleCauses, Partition, Verdict
from profharness.units import format_number


@dataclass(frozen=True)
class Limit:
    """`label` for tables, `clause` to follow "78 % of the time", `advice` to follow "Try"."""

    label: str
    clause: str
    advice: str


IDLE_CAUSES: dict[str, Limit] = {
    "host_not_ready_ns": Limit("host not ready", "the {device} waits for the host to have the next work ready",
                               "prefetching in the data loader, fewer Python steps between launches, or torch.compile"),
    "launch_in_progress_ns": Limit("launches", "the {device} waits for kernel launches",
                                   "device graphs (HIP or CUDA graphs), torch.compile"),
    "synchronisation_ns": Limit("synchronisation", "the host sits in a synchronisation call with nothing queued",
                                "removing .item(), .cpu() and explicit synchronisation from the loop"),
    "waiting_copy_or_event_ns": Limit("waiting on copies or events", "the {device} waits for a copy or an event",
                                      "pinned memory with non_blocking copies on a stream of their own"),
    "queued_gap_ns": Limit("queued gaps", "kernels are queued, yet the {device} pauses between them",
                           "fewer, larger kernels: fusion or a larger batch"),
    "no_host_record_ns": Limit("no host record", "the trace does not say what the host did meanwhile",
                               "--hip-trace (or --profile torch), so that the host's calls are in the trace"),
}

LIMITERS: dict[str, Limit] = {
    "idle": Limit("idle", "the {device} is idle", "a larger batch, or more work in flight"),
    "communication": Limit("communication", "the {device} waits for collectives",
                           "overlapping collectives with compute: larger buckets, or fewer ranks per model"),
    "copy": Limit("copies", "the {device} waits for copies", "pinned memory with non_blocking copies, or keeping inputs on the device"),
    "underfilled": Limit("underfilled", "kernels run that leave more than half of the compute units empty",
                         "a larger batch, fusion, or several streams or processes on this device"),
    "compute": Limit("compute", "kernels run at the compute ceiling", "a lower precision, or a smaller model: the units are full"),
    "bandwidth": Limit("bandwidth", "kernels run at the memory's ceiling", "fusing elementwise work, or a narrower data type"),
    "inside-kernel": Limit("inside kernels", "kernels fill the device but reach neither ceiling",
                           "a hardware counter pass on the top kernels (--pmc): latency, LDS, gathers or atomics"),
    "undetermined": Limit("undetermined", "kernels fill the device; FLOPs and traffic are unknown",
                          "--pmc, or `profharness calibrate` and --flops-per-item, to tell compute from bandwidth"),
}


def largest_cause(partition: Partition | None) -> tuple[Limit, int] | None:
    """The idle cause with most time and its ns, where the partition splits its idle time."""
    if partition is None or partition.idle_causes is None:
        return None
    name, ns = max(cause_times(partition.idle_causes), key=lambda pair: pair[1])
    return (IDLE_CAUSES[name], ns) if ns else None


def cause_times(causes: IdleCauses) -> tuple[tuple[str, int], ...]:
    """Each idle cause's field name and ns, in the order of METRICS 2 as the table above lists them."""
    return tuple((name, getattr(causes, name)) for name in IDLE_CAUSES)


def limit_of(verdict: Verdict, partition: Partition | None) -> Limit:
    """The words for a verdict; an idle verdict speaks of its largest cause when that is more than half of the idle time."""
    if verdict.limiter == "idle":
        cause = largest_cause(partition)
        if cause is not None and partition is not None and 2 * cause[1] >= partition.idle_ns:
            return cause[0]
    return LIMITERS.get(verdict.limiter, LIMITERS["undetermined"])


def short_verdict(verdict: Verdict | None, partition: Partition | None) -> str:
    """One cell: `host: launches (78 % of the time)`, `bandwidth: gathers at 71 % of the measured copy`."""
    if verdict is None:
        return ""
    if not verdict.trusted:
        return "no verdict: see findings"
    if verdict.limiter == "none":
        return verdict.evidence or "nothing stands out"
    limit = limit_of(verdict, partition)
    label = f"idle: {limit.label}" if verdict.limiter == "idle" and limit.label != "idle" else limit.label
    if verdict.limiter == "idle" or not verdict.evidence:
        return f"{label} ({format_number(100 * verdict.share)} % of the time)"
    if verdict.evidence.lower().startswith(label.lower()):
        return verdict.evidence
    return f"{label}: {verdict.evidence}"


def full_verdict(verdict: Verdict | None, partition: Partition | None) -> str:
    """One sentence for a whole window: label, share, evidence and the bound on the gain."""
    if verdict is None or not verdict.trusted or verdict.limiter == "none":
        return short_verdict(verdict, partition)
    limit = limit_of(verdict, partition)
    parts = [f"{limit.label} ({format_number(100 * verdict.share)} % of the time)", verdict.evidence.rstrip(".")]
    return "; ".join(part for part in (": ".join(part for part in parts if part), headroom_text(verdict)) if part)


def headroom_text(verdict: Verdict) -> str:
    """`removing it bounds the gain at 1.28x`, where the verdict bounds it."""
    return "" if verdict.headroom is None else f"removing it bounds the gain at {verdict.headroom:.2f}x"
