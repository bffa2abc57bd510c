"""What the requests of one level say at once, for the search that decides on the next level.
Pure.
"""

from __future__ import annotations

import numpy as np

from profharness.rundir.levels import Level, LevelResult
from profharness.stats.load import level_figures
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Requests

_S, _MS = 1e9, 1e6


def in_window(requests: Requests, level: Level) -> Requests:
    """The requests that ended in the level's window, answered or not."""
    done = (
        (requests.done_ns > level.window_start_ns)
        & (requests.done_ns <= level.window_end_ns)
        & (requests.ok != NULL)
    )
    return requests.take(done)


def block_rates(done_ns: I64, items: I64, level: Level, blocks: int) -> F64:
    """Items/s in equal parts of the window, fewer where requests are few; empty without
    requests.
    """
    count = min(blocks, len(done_ns))
    if not count or level.window_ns <= 0:
        return np.empty(0)
    edges = np.linspace(level.window_start_ns, level.window_end_ns, count + 1)
    part = np.clip(np.searchsorted(edges, done_ns, "left") - 1, 0, count - 1)
    return np.asarray(np.bincount(part, items, count) / (level.window_ns / count) * _S)


def level_result(requests: Requests, level: Level) -> LevelResult:
    """Throughput with its error, corrected latency and the share of failures, as the reports will
    have them too.
    """
    if level.window_ns <= 0:
        return LevelResult(failed_share=1.0)
    figures = level_figures(requests, level)
    corrected = figures.corrected
    if corrected is None:
        return LevelResult(failed_share=1.0)
    named = {f"p{one.q:g}".replace(".", "_"): one.value_ns for one in corrected.percentiles}
    return LevelResult(
        throughput=figures.throughput.value or 0.0,
        throughput_sem=figures.throughput_sem,
        failed_share=figures.failed_share,
        latency_ms=None if corrected.mean.value is None else corrected.mean.value / _MS,
        percentiles_ms={name: value / _MS for name, value in named.items() if value is not None},
    )
