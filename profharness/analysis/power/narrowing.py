"""What telemetry of the same window says where the records do not tell whether a device was idle
(docs/metrics.md#narrowed).

The driver's GPU % counts short pauses as busy, and never a busy device as idle: by it a device was
busy for at most its mean over the window. Counters of the hardware say how much of the device was
active: it was busy for at least that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from profharness.analysis.power.contradictions import of_device
from profharness.analysis.records import Figure, IdleCauses, Partition, Summary
from profharness.analysis.time.believed import believed
from profharness.analysis.time.counts import devices_with_work
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.steps import measured
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.stats.streams import Stream, mean, weights
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.units import format_share

MIN_SAMPLES = 10
"""Fewer samples in the window say nothing of it."""
_AT_MOST = (("gpu_activity_mean", 0.01), ("gpu_percent", 0.01))
_AT_LEAST = (("cu_active", 1.0), ("sm_activity", 1.0))
"""Metrics, the better one first, and what makes a share of their values."""
_BUSY = frozenset({"busy", "busy_any"})
_SIGMAS = 2.0


@dataclass(frozen=True)
class _Busy:
    """Bounds of the time in ns in which devices were busy beyond what is recorded, and the words
    for where they come from.
    """

    least: int
    most: int
    said: tuple[str, ...]


def narrowed(summary: Summary, records: Trace, every: Sequence[Stream]) -> Summary:
    """The summary of these records with ranges that telemetry narrows; as it is where none of its
    figures is a range, or nothing was sampled in the window.
    """
    split = summary.partition
    if split is None or not split.open_ns or not every:
        return summary
    found = _busy(records, every)
    if not found.said or (found.least <= 0 and found.most >= split.open_ns):
        return summary
    most = min(max(found.most, 0), split.open_ns)
    after = _with_idle(split, split.idle_or_not_recorded_ns - most)
    least = min(max(found.least, 0), most)
    figures = {
        name: _figure(name, figure, (split, after), least, found.said)
        for name, figure in summary.metrics.items()
    }
    return msgspec.structs.replace(summary, partition=after, metrics=figures)


def _busy(trace: Trace, every: Sequence[Stream]) -> _Busy:
    trace = believed(trace)
    idle, windows = IdleAnalysis(trace), measured(trace)
    least, most, said = 0, 0, list[str]()
    for position in devices_with_work(trace):
        when = windows.on(position)
        unknown = intervals.intersect(idle.not_recorded(position), when).total
        known = intervals.intersect(idle.work.busy(position).times, when).total
        own = {} if position == NULL else of_device(trace.devices[position], every)
        high = _mean(own, _AT_MOST, when, 1)
        low = _mean(own, _AT_LEAST, when, -1)
        most += (
            unknown if high is None else min(max(round(high[1] * when.total) - known, 0), unknown)
        )
        least += 0 if low is None else min(max(round(low[1] * when.total) - known, 0), unknown)
        if high is not None:
            said.append(f"the driver's GPU % is {format_share(high[0])} in the window")
        if low is not None:
            said.append(f"counters say {format_share(low[0])} active")
    return _Busy(least, most, tuple(dict.fromkeys(said)))


def _mean(
    own: Mapping[str, Stream], metrics: Sequence[tuple[str, float]], when: Intervals, side: int
) -> tuple[float, float] | None:
    """The mean share of the first metric that was sampled often enough in the window, and its bound
    on this side; None without one.
    """
    for metric, scale in metrics:
        stream = own.get(metric)
        if stream is None:
            continue
        weight = weights(stream.samples, when)
        inside = stream.samples.value[weight > 0] * scale
        if len(inside) < MIN_SAMPLES:
            continue
        middle = mean(stream.samples.value, weight) * scale
        error = _SIGMAS * float(np.std(inside, ddof=1)) / len(inside) ** 0.5
        return middle, min(max(middle + side * error, 0.0), 1.0)
    return None


def _with_idle(split: Partition, idle_ns: int) -> Partition:
    """The partition with so much of what is not known as idle time, whose cause nobody knows."""
    causes = split.idle_causes or IdleCauses()
    return msgspec.structs.replace(
        split,
        idle_ns=split.idle_ns + idle_ns,
        idle_or_not_recorded_ns=split.idle_or_not_recorded_ns - idle_ns,
        idle_causes=msgspec.structs.replace(
            causes,
            no_host_record_ns=causes.no_host_record_ns + idle_ns,
            macro_ns=causes.macro_ns + idle_ns,
        ),
    )


def _figure(
    name: str,
    figure: Figure,
    splits: tuple[Partition, Partition],
    least_ns: int,
    said: Sequence[str],
) -> Figure:
    before, after = splits
    low, high = figure.low, figure.high
    if not figure.is_range or low is None or before.why_open not in figure.note:
        return figure
    window = before.window_ns
    if name == "idle":
        low, high = after.idle_ns / window, low + (before.open_ns - least_ns) / window
    elif high is not None:
        high = min(high, low + after.idle_or_not_recorded_ns / window)
    if name in _BUSY:
        low += least_ns / window
    why = "; ".join((after.why_open, *said))
    return msgspec.structs.replace(
        figure, low=low, high=high, note=figure.note.replace(before.why_open, why.lstrip("; "))
    )
