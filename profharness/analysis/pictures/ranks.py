"""How the window of each rank divides: one row per device that did work."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from profharness.analysis.pictures.records import RankShare
from profharness.analysis.records import Summary
from profharness.analysis.time.counts import device_keys
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import partition_windows
from profharness.analysis.time.windows import Windows
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def rank_shares(trace: Trace, windows: Windows) -> tuple[RankShare, ...]:
    """The devices of one trace; none where there are fewer than two to compare."""
    keys = device_keys(trace)
    if len(keys) < 2:
        return ()
    rows, idle = [], IdleAnalysis(trace)
    for position, key in keys.items():
        split = partition_windows(trace, windows, (position,), idle)
        rows.append(
            RankShare(
                device=key,
                rank=_rank(trace, position),
                window_ns=split.window_ns,
                compute_ns=split.compute_ns,
                exposed_communication_ns=split.exposed_communication_ns,
                exposed_copy_ns=split.exposed_copy_ns,
                idle_ns=split.idle_ns,
                idle_or_not_recorded_ns=split.idle_or_not_recorded_ns,
            )
        )
    return tuple(rows)


def shares_of_files(
    files: Iterable[tuple[Summary, frozenset[int | None]]],
) -> tuple[RankShare, ...]:
    """The ranks of several files, from their summaries and the ranks that worked in each; a file
    of several ranks is one row.
    """
    rows = []
    for summary, ranks in files:
        split = summary.partition
        if split is None or not split.window_ns:
            continue
        named = [rank for rank in ranks if rank is not None]
        rows.append(
            RankShare(
                device=summary.source.rpartition("/")[2],
                rank=named[0] if len(named) == len(ranks) == 1 else None,
                window_ns=split.window_ns,
                compute_ns=split.compute_ns,
                exposed_communication_ns=split.exposed_communication_ns,
                exposed_copy_ns=split.exposed_copy_ns,
                idle_ns=split.idle_ns,
                idle_or_not_recorded_ns=split.idle_or_not_recorded_ns,
            )
        )
    return tuple(rows) if len(rows) > 1 else ()


def _rank(trace: Trace, device: int) -> int | None:
    """The rank that the device says, else the one of all its kernels."""
    if device != NULL and trace.devices[device].rank is not None:
        return trace.devices[device].rank
    ranks = np.unique(trace.kernels.rank[trace.kernels.device == device])
    return int(ranks[0]) if len(ranks) == 1 and ranks[0] != NULL else None
