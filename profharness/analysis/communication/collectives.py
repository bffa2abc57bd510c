"""Collectives of a trace, rank by rank, and how fast they moved data by nccl-tests' definitions.

On a device a collective is its kernel; on the CPU the range from the rank's call until the
collective was complete there.

Sizes: of a reduction to all, a broadcast and a reduction to one the buffer of a rank; of a gather
to all, a scattered reduction, and an exchange of all with all the whole, which is the ranks' parts
together. Algorithm bandwidth is size over time; bus bandwidth multiplies by what each rank must
send at least, so that it compares with the hardware whatever the number of ranks (nccl-tests,
doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.time.counts import device_keys
from profharness.analysis.time.timeline import is_communication
from profharness.trace.collectives import Collective, decode, encode, normalised
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, ClockDomain, Trace

# torch's names of types (c10::toString), bytes per element
_BYTES = {
    "Float": 4,
    "Double": 8,
    "Half": 2,
    "BFloat16": 2,
    "Long": 8,
    "Int": 4,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "Bool": 1,
    "Float8_e4m3fn": 1,
    "Float8_e5m2": 1,
    "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1,
    "ComplexHalf": 4,
    "ComplexFloat": 8,
    "ComplexDouble": 16,
    "UInt16": 2,
    "UInt32": 4,
    "UInt64": 8,
}
_WHOLE = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
_ALONE = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Collectives of one rank (kernels, or ranges of the host) in order of start, ns on its clock.
    `what[i]` is a position in `texts`.

    `common_clock` says that these times compare with those of other ranks of the same run as they
    are.
    """

    rank: str
    start: I64
    dur: I64
    what: I64
    texts: tuple[str, ...]
    common_clock: bool = False


def arrivals(trace: Trace) -> tuple[Arrivals, ...]:
    """The arrivals of every rank (of every device where one process drives several) that ran a
    collective; those on the CPU apart from those on devices.
    """
    pool: dict[str, int] = {}
    on_devices = _on_devices(trace, pool)
    taken = {rank.rank for rank in on_devices}
    for host in host_ranks(trace):
        calls = _pooled(pool, [trace.strings[code] for code in host.told.tolist()])
        on_devices.append(
            Arrivals(
                f"{host.label} on the CPU" if host.label in taken else host.label,
                host.start,
                host.dur,
                calls,
                (),
                _on_run_clock(trace, host.sources),
            )
        )
    texts = tuple(pool)
    return tuple(replace(rank, texts=texts) for rank in on_devices)


@dataclass(frozen=True, eq=False)
class HostRank:
    """Collectives of one process on the CPU in order of start, ns; `told` are codes of their texts,
    `pids` its processes.
    """

    label: str
    rank: int | None
    host: str
    start: I64
    dur: I64
    told: I64
    sources: I64
    pids: I64


def host_ranks(trace: Trace) -> list[HostRank]:
    """Ranks (processes, where a source names no rank) that ran collectives on the CPU."""
    marks = trace.marks
    rows = np.flatnonzero(marks.collective != NULL)
    if not len(rows):
        return []
    rank = _ranks(trace, marks.source[rows], marks.rank[rows])
    owners, owner = np.unique(
        np.stack([rank, np.where(rank == NULL, marks.pid[rows], NULL)]), axis=1, return_inverse=True
    )
    ranks = []
    for number, (of_rank, pid) in enumerate(owners.T.tolist()):
        calls = rows[owner.reshape(-1) == number]
        calls = calls[np.argsort(marks.start_ns[calls], kind="stable")]
        label = (
            f"rank {of_rank}"
            if of_rank != NULL
            else f"process {pid}"
            if pid != NULL
            else "the process"
        )
        sources = np.unique(marks.source[calls]).astype(np.int64)
        ranks.append(
            HostRank(
                label,
                None if of_rank == NULL else of_rank,
                trace.sources[int(sources[0])].host,
                marks.start_ns[calls],
                marks.dur_ns[calls],
                marks.collective[calls].astype(np.int64),
                sources,
                np.unique(marks.pid[calls]),
            )
        )
    return ranks


def _ranks(trace: Trace, source: I32, recorded: I32) -> I64:
    """The rank of each row: of its source, else as recorded."""
    stated = np.array(
        [NULL if origin.rank is None else origin.rank for origin in trace.sources], np.int64
    )[source]
    ranks: I64 = np.where(stated == NULL, recorded, stated)
    return ranks


def _on_run_clock(trace: Trace, sources: I64) -> bool:
    return all(trace.sources[int(source)].clock is ClockDomain.RUN for source in sources)


def _pooled(pool: dict[str, int], texts: Sequence[str]) -> I64:
    return np.array([pool.setdefault(text, len(pool)) for text in texts], np.int64)


def _on_devices(trace: Trace, pool: dict[str, int]) -> list[Arrivals]:
    kernels = trace.kernels
    rows = np.flatnonzero(is_communication(trace.strings, kernels))
    if not len(rows):
        return []
    rank = _ranks(trace, kernels.source[rows], kernels.rank[rows])
    keys = device_keys(trace)
    owners, owner = np.unique(
        np.stack([rank, kernels.device[rows].astype(np.int64)]), axis=1, return_inverse=True
    )
    single = {int(rank): int((owners[0] == rank).sum()) == 1 for rank in owners[0]}
    text_of = _texts(trace, rows, pool)
    device_arrivals = []
    for number, (of_rank, device) in enumerate(owners.T.tolist()):
        calls = np.flatnonzero(owner.reshape(-1) == number)
        calls = calls[np.lexsort((kernels.stream[rows[calls]], kernels.start_ns[rows[calls]]))]
        aligned = _on_run_clock(trace, np.unique(kernels.source[rows[calls]]).astype(np.int64))
        label = (
            f"rank {of_rank}" if of_rank != NULL and single[of_rank] else f"device {keys[device]}"
        )
        device_arrivals.append(
            Arrivals(
                label,
                kernels.start_ns[rows[calls]],
                kernels.dur_ns[rows[calls]],
                text_of[calls],
                (),
                aligned,
            )
        )
    return device_arrivals


def _texts(trace: Trace, rows: I64, pool: dict[str, int]) -> I64:
    """What each of these kernels does, as positions in the pool: as recorded, else by its name."""
    kernels = trace.kernels
    pairs, place = np.unique(
        np.stack([kernels.collective[rows], kernels.name[rows]]), axis=1, return_inverse=True
    )
    numbers = []
    for stated, name in pairs.T.tolist():
        text = (
            trace.strings[stated]
            if stated != NULL
            else encode(Collective(normalised(function_name(trace.strings[name]))))
        )
        numbers.append(pool.setdefault(text, len(pool)))
    text_of: I64 = np.array(numbers, np.int64)[place.reshape(-1)]
    return text_of


def message_bytes(collective: Collective) -> int | None:
    """The size that nccl-tests states for a call; None where elements, type or group are not
    recorded.
    """
    size = _BYTES.get(collective.dtype)
    elements = [
        count for count in (collective.in_elements, collective.out_elements) if count is not None
    ]
    if size is None or not elements:
        return None
    return size * max(elements) if collective.kind in _WHOLE else size * elements[0]


def bus_factor(kind: str, ranks: int | None) -> float | None:
    """What algorithm bandwidth is multiplied by; None where the number of ranks is needed and not
    known.
    """
    if kind not in _ALONE and kind != "all_reduce":
        return 1.0
    if not ranks:
        return None
    return (2 if kind == "all_reduce" else 1) * (ranks - 1) / ranks


def described(text: str) -> Collective:
    """The collective of a text of `Arrivals.texts`."""
    return decode(text) or Collective(text)


def relabelled(parts: Sequence[tuple[str, Sequence[Arrivals]]]) -> list[Arrivals]:
    """Arrivals of several files with one pool of texts and distinct names; those that share a name
    get their file's in front.
    """
    names = [rank.rank for _, group in parts for rank in group]
    pool: dict[str, int] = {}
    labelled = []
    for file, group in parts:
        for rank in group:
            place = np.array([pool.setdefault(text, len(pool)) for text in rank.texts], np.int64)
            label = rank.rank if names.count(rank.rank) == 1 else f"{file} {rank.rank}"
            labelled.append((label, rank, place[rank.what] if len(place) else rank.what))
    texts = tuple(pool)
    return [
        Arrivals(label, rank.start, rank.dur, call_texts, texts, rank.common_clock)
        for label, rank, call_texts in labelled
    ]
