"""Telemetry of a run: rows for the report, and means over chosen times (a point's trials in the bare pass).

Values that cover an interval are weighted by their overlap with the time asked for; instants count once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from profharness.analysis.intervals import Intervals, contains, inside_ns
from profharness.analysis.records import Figure, TelemetryRow
from profharness.trace.derive import THROUGHPUT
from profharness.trace.model import F64, I64, NULL, Samples, Trace
from profharness.trace.sample_metrics import SAMPLE_METRICS

PLOTTED = 400
_UNITS = {metric.name: metric.unit for metric in SAMPLE_METRICS}
# Peaks say what had to fit; a mean of memory would hide it.
_PEAKS = frozenset({"memory_tree", "memory_cgroup", "memory_node_used"})
_NAMES = {"cpu_tree": "cores_used", "memory_tree": "memory_peak"}


@dataclass(frozen=True, eq=False)
class Stream:
    """One metric of one device (or of the host), by time."""

    metric: str
    device: str
    samples: Samples

    @property
    def unit(self) -> str:
        return _UNITS.get(self.metric, "")


def streams(trace: Trace) -> tuple[Stream, ...]:
    """Every measured metric of every device, in the order of the metric table; values derived from trials are left out."""
    samples = trace.samples
    if not len(samples):
        return ()
    order = np.lexsort((samples.at_ns, samples.device, samples.metric))
    sorted_samples = samples.take(order)
    pairs = np.stack([sorted_samples.metric, sorted_samples.device])
    cuts = np.flatnonzero((np.diff(pairs) != 0).any(axis=0)) + 1
    bounds = [0, *cuts.tolist(), len(sorted_samples)]
    found = [_stream(trace, sorted_samples.take(np.arange(start, end))) for start, end in pairwise(bounds)]
    rank = {metric.name: place for place, metric in enumerate(SAMPLE_METRICS)}
    return tuple(sorted((one for one in found if one.metric != THROUGHPUT and len(one.samples)),
                        key=lambda one: (rank.get(one.metric, len(rank)), one.metric, one.device)))


def _stream(trace: Trace, samples: Samples) -> Stream:
    device = int(samples.device[0])
    name = "" if device == NULL else trace.devices[device].index
    return Stream(trace.strings[int(samples.metric[0])], name, samples.take(np.isfinite(samples.value)))


def rows(trace: Trace) -> tuple[TelemetryRow, ...]:
    """One row per metric and device over the whole run; `at_s` counts from the run's first sample."""
    every = streams(trace)
    first = min((int(one.samples.at_ns[0]) for one in every), default=0)
    return tuple(_row(one, first) for one in every)


def _row(stream: Stream, first: int) -> TelemetryRow:
    samples = stream.samples
    length = samples.until_ns - samples.at_ns
    weight = np.where(length > 0, length, 0) if length.any() else np.ones(len(samples), np.int64)
    at, values = _thinned(samples, first)
    return TelemetryRow(metric=stream.metric, unit=stream.unit, device=stream.device, mean=_mean(samples.value, weight),
                        low=float(samples.value.min()), high=float(samples.value.max()), samples=len(samples),
                        at_s=at, values=values)


def _thinned(samples: Samples, first: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most 400 points, each the mean of as many samples: a plot of more hides what it shows."""
    size = -(-len(samples) // PLOTTED)
    starts = np.arange(0, len(samples), size)
    counts = np.diff(np.append(starts, len(samples)))
    values = np.add.reduceat(samples.value, starts) / counts
    return tuple(((samples.at_ns[starts] - first) / 1e9).tolist()), tuple(values.tolist())


def _mean(values: F64, weight: npt.NDArray[np.int64]) -> float:
    return float(np.dot(values, weight) / weight.sum())


def figures_in(every: tuple[Stream, ...], when: Intervals, source: str) -> dict[str, Figure]:
    """Means (of memory: the peak) of every metric inside the windows; metrics without a sample there are left out.

    Metrics of a device carry its name where the run has several devices.
    """
    found: dict[str, Figure] = {}
    several = len({one.device for one in every if one.device}) > 1
    for one in every:
        weight = _weights(one.samples, when)
        if not weight.any():
            continue
        name = _NAMES.get(one.metric, one.metric) + (f"_{one.device}" if several and one.device else "")
        peak = one.metric in _PEAKS
        value = float(one.samples.value[weight > 0].max()) if peak else _mean(one.samples.value, weight)
        found[name] = Figure(value=value, unit=one.unit, source=source, note="highest sample" if peak else "")
    return found


def _weights(samples: Samples, when: Intervals) -> I64:
    """Overlap of each interval with the windows in ns; 1 for an instant inside them."""
    instants = samples.until_ns <= samples.at_ns
    overlap = inside_ns(Intervals(samples.at_ns, samples.until_ns), when)
    return np.asarray(np.where(instants, contains(when, samples.at_ns).astype(np.int64), overlap))
