"""Communication of a trace, of many files, or of a run: what it costs each device, how fast it is,
which rank is late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from profharness.analysis.communication.cells import rank_cells, with_arrivals
from profharness.analysis.communication.collectives import (
    Arrivals,
    arrivals,
    bus_factor,
    described,
    host_ranks,
    message_bytes,
)
from profharness.analysis.communication.exchanges import exchanges
from profharness.analysis.communication.groups import rank_groups
from profharness.analysis.communication.matching import by_value, matched
from profharness.analysis.communication.rank_times import (
    RankTimes,
    quarters,
    rank_times,
    renamed,
)
from profharness.analysis.communication.records import (
    CollectiveRow,
    Communication,
    CommunicationTime,
)
from profharness.analysis.communication.skew import skew, transfer_ns
from profharness.analysis.communication.slowest import slowest
from profharness.analysis.communication.straggler import straggler
from profharness.analysis.kernels import patterns
from profharness.analysis.records import Partition
from profharness.analysis.time.counts import device_keys, devices_with_work
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import timeline
from profharness.analysis.time.windows import Windows
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.collectives import UNTOLD, Collective
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

HIGH_EXPOSED = 0.10
ONE_RANK = "the traces of several ranks of one job (one file per rank, or a run of them)"
UNMATCHED = "ranks whose collectives agree in kind and order"
GROUPS = (
    "the process group of each collective, which torch does not record on the CPU where "
    "there are several"
)
_HANDING_OVER = re.compile(r"^c10d::")


def communication(
    trace: Trace, windows: Windows, idle: IdleAnalysis | None = None
) -> Communication | None:
    """What a trace says; None without collectives and without copies between devices. `idle` is the
    trace's own, if known.
    """
    rows = _times(trace, windows.when)
    ranks = arrivals(trace)
    if not ranks and not any(row.peer_copies for row in rows):
        return None
    found = summarise(rows, ranks)
    times = rank_times(trace, rows, windows) if found.skew is not None else ()
    parts = [
        rank_times(trace, _times(trace, part.when), part)
        for part in (quarters(windows) if len(times) > 1 else ())
    ]
    cells = with_arrivals(
        rank_cells(trace, windows, ranks, idle or IdleAnalysis(trace)), found.skew
    )
    return msgspec.structs.replace(
        found,
        slowest=slowest(found.skew, times, parts),
        ranks=cells,
        groups=rank_groups(cells),
    )


def _times(trace: Trace, windows: Intervals) -> list[CommunicationTime]:
    return [*device_times(trace, windows), *host_times(trace, windows)]


def summarise(devices: Sequence[CommunicationTime], ranks: Sequence[Arrivals]) -> Communication:
    """The communication of devices and ranks that were analysed separately; the texts of all ranks
    must come from one pool.
    """
    groups, left = matched(ranks)
    differences = skew(ranks, groups, left)
    return Communication(
        devices=tuple(devices),
        collectives=tuple(_rows(ranks, transfer_ns(groups, ranks))),
        skew=differences,
        needs="" if differences is not None else _needs(ranks),
        exchange=exchanges(ranks, groups),
    )


def _needs(ranks: Sequence[Arrivals]) -> str:
    """What is missing for a comparison of ranks that could not be made."""
    if len(ranks) < 2:
        return ONE_RANK
    return (
        GROUPS
        if any(described(text).group.endswith(UNTOLD) for rank in ranks for text in rank.texts)
        else UNMATCHED
    )


def device_times(trace: Trace, windows: Intervals) -> list[CommunicationTime]:
    """Time of collectives and peer copies of each device with work in the windows."""
    keys, copies = device_keys(trace), trace.copies
    times = []
    for device in devices_with_work(trace):
        line = timeline(trace, device)
        talking = intervals.intersect(line.communication, windows)
        exposed = intervals.subtract(talking, line.compute).total
        spans = intervals.lasting(copies.start_ns, copies.dur_ns)
        rows = (
            (copies.device == device)
            & (copies.kind == trace.strings.find("p2p"))
            & (intervals.inside_ns(spans, windows) > 0)
            & (copies.kind != NULL)
        )
        between = intervals.intersect(
            intervals.merge(Intervals(spans.start[rows], spans.end[rows])), windows
        )
        sizes = copies.bytes[rows]
        times.append(
            CommunicationTime(
                device=keys[device],
                rank=trace.devices[device].rank if device != NULL else None,
                window_ns=windows.total,
                total_ns=talking.total,
                exposed_ns=exposed,
                overlapped_ns=talking.total - exposed,
                peer_copies=int(rows.sum()),
                peer_copy_ns=between.total,
                peer_copy_bytes=int(sizes.sum()) if len(sizes) and (sizes != NULL).all() else None,
            )
        )
    return times


def host_times(trace: Trace, windows: Intervals) -> list[CommunicationTime]:
    """Time of the collectives of each rank that ran them on the CPU: exposed where none of its
    operators ran meanwhile.

    c10d's own operators only hand a collective over, so they hide none.
    """
    times, ops = [], trace.ops
    handing = patterns.matching(trace.strings, ops, _HANDING_OVER)
    hosts = host_ranks(trace)
    for rank in hosts:
        talking = intervals.intersect(
            intervals.merge(intervals.lasting(rank.start, rank.dur)), windows
        )
        of_rank = np.isin(ops.source, rank.sources) & np.isin(ops.pid, rank.pids) & ~handing
        running = intervals.merge(intervals.lasting(ops.start_ns[of_rank], ops.dur_ns[of_rank]))
        exposed = intervals.subtract(talking, running).total
        place = (
            "cpu"
            if len(hosts) == 1 and len(trace.sources) == 1
            else f"{rank.host or '-'}/{'-' if rank.rank is None else rank.rank}/cpu"
        )
        times.append(
            CommunicationTime(
                device=place,
                rank=rank.rank,
                window_ns=windows.total,
                total_ns=talking.total,
                exposed_ns=exposed,
                overlapped_ns=talking.total - exposed,
                on_host=True,
            )
        )
    return times


def _rows(ranks: Sequence[Arrivals], shortest: dict[int, intervals.F64]) -> list[CollectiveRow]:
    """One row per kind and size, the longest total first."""
    rows = []
    rows_of = [by_value(rank.what) for rank in ranks]
    for collective, alike in _alike(shortest, ranks).items():
        durations_of_ranks = [
            np.concatenate([rank.dur[own[what]] for what in alike if what in own])
            for rank, own in zip(ranks, rows_of, strict=True)
            if any(what in own for what in alike)
        ]
        durations = np.concatenate(durations_of_ranks)
        transfer = _median(np.concatenate([shortest[what] for what in alike]))
        size, factor = message_bytes(collective), bus_factor(collective.kind, collective.group_size)
        algorithm = size / transfer * 1e9 if size and transfer > 0 else None
        rows.append(
            CollectiveRow(
                kind=collective.kind,
                dtype=collective.dtype,
                group_size=collective.group_size,
                bytes=size,
                ranks=len(durations_of_ranks),
                calls=len(durations),
                total_ns=int(durations.sum()),
                mean_ns=float(durations.mean() if len(durations) > 1 else durations[0]),
                transfer_ns=transfer,
                algorithm_bandwidth=algorithm,
                bus_bandwidth=algorithm * factor
                if algorithm is not None and factor is not None
                else None,
            )
        )
    return sorted(rows, key=lambda row: (-row.total_ns, row.kind, row.bytes or 0))


def _alike(
    shortest: Mapping[int, intervals.F64], ranks: Sequence[Arrivals]
) -> dict[Collective, list[int]]:
    """Positions of texts that differ in split sizes alone."""
    alike: dict[Collective, list[int]] = {}
    for what in shortest:
        collective = described(ranks[0].texts[what])
        if collective.in_splits or collective.out_splits:
            collective = msgspec.structs.replace(collective, in_splits=(), out_splits=())
        alike.setdefault(collective, []).append(what)
    return alike


def _median(durations: intervals.F64) -> float:
    """NumPy's takes thirty times as long for one."""
    return float(np.median(durations) if len(durations) > 1 else durations[0])


def communication_findings(
    summary: Communication | None, split: Partition | None
) -> tuple[Finding, ...]:
    """A persistent straggler, and collectives that nothing overlaps for a tenth of the time or
    more.
    """
    if summary is None:
        return ()
    return (
        *(_exposed(split) if split is not None else _exposed_on_hosts(summary.devices)),
        *straggler(summary),
    )


def _exposed(split: Partition) -> tuple[Finding, ...]:
    if not split.window_ns or split.exposed_communication_ns < HIGH_EXPOSED * split.window_ns:
        return ()
    share, whole = (
        split.exposed_communication_ns / split.window_ns,
        split.communication_ns / split.window_ns,
    )
    return (
        finding(
            "exposed-communication",
            f"collectives run alone {100 * share:.1f} % of the time (of {100 * whole:.1f} % in "
            "all): the device waits for them",
            exposed_share=share,
            communication_share=whole,
        ),
    )


def _exposed_on_hosts(rows: Sequence[CommunicationTime]) -> tuple[Finding, ...]:
    """The finding on collectives that nothing overlaps, for ranks without device work."""
    window, exposed = sum(row.window_ns for row in rows), sum(row.exposed_ns for row in rows)
    if not window or exposed < HIGH_EXPOSED * window:
        return ()
    share, whole = exposed / window, sum(row.total_ns for row in rows) / window
    return (
        finding(
            "exposed-communication",
            f"collectives run alone {100 * share:.1f} % of the time (of {100 * whole:.1f} % in "
            "all): the ranks wait for them",
            exposed_share=share,
            communication_share=whole,
        ),
    )


def merge_communication(
    parts: Sequence[tuple[str, Communication | None]],
    ranks: Sequence[Arrivals],
    times: Sequence[tuple[str, Sequence[RankTimes]]] = (),
) -> Communication | None:
    """The communication of many files: the devices of each (under the file's name where two share
    theirs), and all ranks together. `times` are those of the ranks of each file.
    """
    rows = [
        (file, row) for file, summary in parts if summary is not None for row in summary.devices
    ]
    if not rows and not ranks:
        return None
    names = [_device(row) for _, row in rows]
    devices = [
        msgspec.structs.replace(row, device=name if names.count(name) == 1 else f"{file} {name}")
        for (file, row), name in zip(rows, names, strict=True)
    ]
    found = summarise(devices, ranks)
    known = [row.rank for row in found.skew.rows] if found.skew is not None else []
    of_ranks = [one for file, group in times for one in renamed(group, known, file)]
    of_files = [cells for _, summary in parts if summary is not None for cells in summary.ranks]
    cells = with_arrivals(of_files, found.skew)
    return msgspec.structs.replace(
        found, slowest=slowest(found.skew, of_ranks), ranks=cells, groups=rank_groups(cells)
    )


def _device(row: CommunicationTime) -> str:
    return row.device if row.rank is None else f"{row.rank}/{row.device.rpartition('/')[2]}"
