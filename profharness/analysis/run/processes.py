"""Figures of a point that several processes measured at once: over their common window, and as the
classic tool prints them.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.records import Classic, Figure
from profharness.analysis.run.trials import PointTrials
from profharness.stats.throughput import CommonWindow, Drift, common_window


def window_of_processes(trials: PointTrials) -> CommonWindow | None:
    """None for one process, and where they never worked at the same time."""
    return (
        None
        if trials.processes == 1
        else common_window(trials.starts_ns, trials.durations_ns, trials.items, trials.owner)
    )


def process_figures(trials: PointTrials, origin: str, unit: str, drift: Drift) -> dict[str, Figure]:
    """Throughput over the common window (its interval widened by the drift of repeated points), the
    sum of each one's own, their spread.
    """
    window = window_of_processes(trials)
    if window is None:
        return {}
    margin = abs(drift.relative) * window.throughput
    low, high = (
        None if end is None else max(0.0, end + side * margin)
        for end, side in ((window.low, -1), (window.high, 1))
    )
    note = f"common window of {window.processes} processes"
    return {
        "throughput": Figure(
            value=window.throughput, unit=unit, low=low, high=high, source=origin, note=note
        ),
        "throughput_summed": Figure(
            value=window.summed,
            unit=unit,
            source=origin,
            note="sum of each process over its own window",
        ),
        "process_spread": Figure(
            value=window.spread,
            unit="1",
            source=origin,
            note="the fastest process over the slowest, less 1",
        ),
    }


def classic(trials: PointTrials, model: str) -> Classic | None:
    """None for one process. By that tool's definitions: each process over its own first start to
    last end, latencies pooled, std with ddof 0.
    """
    if trials.processes == 1:
        return None
    rates = []
    for owner in np.unique(trials.owner):
        rows = trials.owner == owner
        ends = trials.starts_ns[rows] + trials.durations_ns[rows]
        rates.append(trials.items[rows].sum() / (ends.max() - trials.starts_ns[rows].min()) * 1e9)
    times = trials.durations_ns / 1e6
    return Classic(
        model=model,
        batch_size=int(trials.items[0]),
        throughput=float(sum(rates)),
        latency_mean_ms=float(times.mean()),
        latency_median_ms=float(np.median(times)),
        latency_std_ms=float(times.std()),
        iterations=len(times),
    )
