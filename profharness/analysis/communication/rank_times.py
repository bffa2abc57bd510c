"""How the window of each rank divides: collectives with nothing beside them, kernels, and what its
host was in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from profharness.analysis.communication.lateness import QUARTERS
from profharness.analysis.communication.records import CommunicationTime
from profharness.analysis.host.by_rank import hosts_by_rank
from profharness.analysis.host.records import HostPart
from profharness.analysis.records import Summary
from profharness.analysis.time.timeline import timeline
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


@dataclass(frozen=True)
class RankTimes:
    """One rank, in ns of its window: `exposed_ns` in collectives and nothing else, `compute_ns` in
    kernels (None where no device works), `parts` what its host was in.
    """

    rank: str
    window_ns: int
    exposed_ns: int
    steps: int = 0
    compute_ns: int | None = None
    parts: tuple[HostPart, ...] = ()


def rank_times(
    trace: Trace, rows: Sequence[CommunicationTime], when: Windows
) -> tuple[RankTimes, ...]:
    """The ranks of one trace, by the times of their collectives; none where fewer than two are
    numbered.
    """
    of_rank: dict[int, list[CommunicationTime]] = {}
    for row in rows:
        if row.rank is not None and row.total_ns:
            of_rank.setdefault(row.rank, []).append(row)
    if len(of_rank) < 2:
        return ()
    hosts, computed = hosts_by_rank(trace, when), _computed(trace, when.when)
    return tuple(
        RankTimes(
            rank=f"rank {rank}",
            window_ns=sum(row.window_ns for row in group),
            exposed_ns=sum(row.exposed_ns for row in group),
            steps=hosts[rank].steps if rank in hosts else 0,
            compute_ns=computed.get(rank),
            parts=hosts[rank].parts if rank in hosts else (),
        )
        for rank, group in of_rank.items()
    )


def _computed(trace: Trace, when: Intervals) -> dict[int, int]:
    """Kernel time of each rank that has devices, collectives left out."""
    times: dict[int, int] = {}
    for device in dict.fromkeys(trace.kernels.device.tolist()):
        rank = trace.devices[device].rank if device != NULL else None
        if rank is not None:
            compute = intervals.intersect(timeline(trace, device).compute, when)
            times[rank] = times.get(rank, 0) + compute.total
    return times


def quarters(when: Windows) -> list[Windows]:
    """Four windows of the same length that make up the whole."""
    if not when.when.total:
        return []
    first, last = int(when.when.start[0]), int(when.when.end[-1])
    edges = [first + (last - first) * part // QUARTERS for part in range(QUARTERS + 1)]
    return [
        Windows(intervals.clip(when.when, low, high), when.label, when.steps // QUARTERS)
        for low, high in pairwise(edges)
    ]


def times_of_file(summary: Summary, ranks: Sequence[int | None]) -> tuple[RankTimes, ...]:
    """How the window of the rank of a file divides; none where several ranks worked in it."""
    talk, host, split = summary.communication, summary.host, summary.partition
    if talk is None or len(ranks) != 1 or ranks[0] is None:
        return ()
    rows = [row for row in talk.devices if row.total_ns]
    return (
        RankTimes(
            rank=f"rank {ranks[0]}",
            window_ns=sum(row.window_ns for row in rows),
            exposed_ns=sum(row.exposed_ns for row in rows),
            steps=0 if host is None else host.steps,
            compute_ns=None if split is None else split.compute_ns,
            parts=() if host is None else host.parts,
        ),
    )


def renamed(times: Iterable[RankTimes], known: Sequence[str], file: str) -> list[RankTimes]:
    """The ranks under the names that `known` has for them: their own, or with the file's in
    front; others are left out.
    """
    found = []
    for one in times:
        name = one.rank if one.rank in known else f"{file} {one.rank}"
        if name in known:
            found.append(
                RankTimes(name, one.window_ns, one.exposed_ns, one.steps, one.compute_ns, one.parts)
            )
    return found
