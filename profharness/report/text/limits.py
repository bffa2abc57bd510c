"""Words for what limits a window: the kind of a verdict, the causes of idle time, and what to
try.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import IdleCauses, Partition
from profharness.analysis.time.records import SEEN_SHARE
from profharness.analysis.verdict.evidence import UNKNOWN_CAUSE, kind_of_cause
from profharness.analysis.verdict.records import Verdict
from profharness.analysis.verdict.window import NOTHING_MEASURED, largest_part
from profharness.analysis.verdict.wording import bound_text
from profharness.findings import ways
from profharness.units import format_share, format_share_range


@dataclass(frozen=True)
class Limit:
    """`label` for tables, `clause` for sentences with the share and the device's word, `advice` to
    follow "Try".
    """

    label: str
    clause: str
    advice: str


NO_VERDICT = "no verdict"
NOT_RECORDED = "not recorded"
"""What may have been idle time, or work that is not in the file."""

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
        f"{ways.CALLS_BESIDE}, so that the host's calls are in the trace",
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
        f"{ways.COUNTING_PASS}: latency, LDS, gathers or atomics",
    ),
    "kernels": Limit(
        "unknown work",
        "{share} of the time kernels run whose work is not known",
        f"--profile torch, which records the operators' shapes{ways.OR_COUNTING}",
    ),
    "undetermined": Limit(
        "undetermined",
        "{share} of the time kernels run, by compute or by bandwidth is not measured",
        f"{ways.COUNTING_OR}`profharness calibrate` and --flops-per-item, "
        "to tell compute from bandwidth",
    ),
}

_COUNTERS_FIRST = Limit(
    LIMITERS["kernels"].label, LIMITERS["kernels"].clause, str(ways.COUNTING_PASS)
)
"""Of kernels of unknown work in a program of which nothing is torch's."""

_CAUSE_OF = {kind_of_cause(name): name for name in IDLE_CAUSES}

CPU_LIMITERS: dict[str, Limit] = {
    "idle-waiting": Limit(
        "waiting",
        "{share} of the time the process waits",
        "finding what it waits for: input, output, a timer or another process",
    ),
    "idle-cores": Limit(
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


def open_label(partition: Partition) -> str:
    """`not recorded`, or `queued, or not recorded` where it comes again in the steps."""
    return f"queued, or {NOT_RECORDED}" if partition.open_recurs else NOT_RECORDED


def busy_range(partition: Partition) -> str:
    """`8.0 to 92.0 %`: for how much of the window the device was busy, at least and at most."""
    window = partition.window_ns
    most = 1 - partition.idle_ns / window
    return format_share_range(most - partition.open_ns / window, most)


def open_share(partition: Partition, part_ns: int) -> str:
    """A part's share of the window, as the range that it has with what is not known."""
    window = partition.window_ns
    return format_share_range(part_ns / window, (part_ns + partition.open_ns) / window)


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
        return CPU_LIMITERS.get(verdict.kind) or _limiter(verdict)
    cause = _CAUSE_OF.get(verdict.kind)
    causes = partition.idle_causes
    if cause is not None and causes is not None and 2 * getattr(causes, cause) >= partition.idle_ns:
        return IDLE_CAUSES[cause]
    if verdict.kind == "undetermined" and largest_part(partition) == "idle":
        return IDLE_CAUSES[UNKNOWN_CAUSE]
    return _limiter(verdict)


def _limiter(verdict: Verdict) -> Limit:
    if verdict.counters_first:
        return _COUNTERS_FIRST
    return LIMITERS.get("idle" if verdict.idle else verdict.kind, LIMITERS["undetermined"])


def label_of(kind: str) -> str:
    """What tables call a kind of verdict where nothing but the kind is known."""
    if kind in _CAUSE_OF:
        return IDLE_CAUSES[_CAUSE_OF[kind]].label
    limit = LIMITERS.get(kind) or CPU_LIMITERS.get(kind)
    return kind if limit is None else limit.label


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


def short_verdict(verdict: Verdict | None, partition: Partition | None, needs: str = "") -> str:
    """One cell: `host: launches (78 % of the time)`, `bandwidth: gathers at 71 % of the measured
    copy`.

    Of a withheld one what it needs stands below the table (`scan.withheld`).
    """
    if verdict is None:
        return NO_VERDICT if needs else ""
    limit, share = limit_of(verdict, partition), format_share(share_of(verdict, partition), 0)
    if limit is CPU_LIMITERS["idle-waiting"]:
        return f"{limit.label} ({share} of the time)"
    if limit in CPU_LIMITERS.values():
        return f"{limit.label} ({share})"
    if verdict.idle or not verdict.evidence:
        side = (
            "host: " if limit in _HOST_SIDE else "idle: " if limit in IDLE_CAUSES.values() else ""
        )
        return f"{side}{limit.label} ({share} of the time)"
    return f"{limit.label}: {verdict.evidence.partition(';')[0]}"


def full_verdict(verdict: Verdict | None, needs: str) -> str:
    """The verdict's sentence, or what it would take; empty where nothing is to be judged."""
    if verdict is not None:
        return verdict.text
    return withheld_text(needs) if needs not in ("", NOTHING_MEASURED) else ""


def withheld_text(needs: str) -> str:
    """`no verdict: needs a quiet node, as other work held the cores`."""
    return f"{NO_VERDICT}: needs {needs}"


def gain_text(verdict: Verdict) -> str:
    """`without them the work would run at most 1.28 times as fast`, where the verdict bounds it; of
    idle time the bound is for all of it.
    """
    return bound_text(verdict.kind, verdict.at_most, in_part=verdict.in_part)


def partition_items(partition: Partition) -> list[str]:
    """`compute 61.3 %`, `communication 8.2 % exposed (of 19.0 %)`, `copies 0.4 %`, `idle 30.1
    %`; where some of it is not known before them `busy 69.9 to 82.0 %`, and behind them `not
    recorded 12.1 %`.
    """
    window, unknown = partition.window_ns, partition.open_ns
    parts = [f"compute {format_share(partition.compute_ns / window)}"]
    if unknown:
        parts.insert(0, f"busy {busy_range(partition)}")
    for label, exposed, total in (
        ("communication", partition.exposed_communication_ns, partition.communication_ns),
        ("copies", partition.exposed_copy_ns, partition.copy_ns),
    ):
        if exposed or total:
            of = f" exposed (of {format_share(total / window)})" if total > exposed else ""
            parts.append(f"{label} {format_share(exposed / window)}{of}")
    parts.append(f"idle {format_share(partition.idle_ns / window)}")
    return (
        [*parts, f"{open_label(partition)} {format_share(unknown / window)}"] if unknown else parts
    )


def idle_items(partition: Partition) -> list[str]:
    """The causes of idle time as shares of the window, largest first; none without a split."""
    if partition.idle_causes is None:
        return []
    causes = sorted(cause_times(partition.idle_causes), key=lambda pair: -pair[1])
    return [
        f"{IDLE_CAUSES[name].label} {format_share(ns / partition.window_ns)}"
        for name, ns in causes
        if ns >= SEEN_SHARE * partition.window_ns
    ]
