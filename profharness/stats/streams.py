"""Telemetry as one series per metric and device, and its means over chosen times.

Values that cover an interval are weighted by their overlap with the time asked for; instants count
once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from profharness.stats.intervals import Intervals, contains, inside_ns, window
from profharness.trace.columns.table import NULL
from profharness.trace.derive import THROUGHPUT
from profharness.trace.model import F64, I64, Samples, Trace
from profharness.trace.sample_metrics import RECORDED_METRICS, place_of, unit_of

_NO_TELEMETRY = frozenset({THROUGHPUT, *(metric.name for metric in RECORDED_METRICS)})


@dataclass(frozen=True, eq=False)
class Stream:
    """One metric of one device (or of the host), by time.

    `device` is its number, empty for the host; `package` the identity of the device that reports
    its package's power, `scope` what that power covers.
    """

    metric: str
    device: str
    samples: Samples
    identity: str = ""
    package: str = ""
    scope: str = ""

    @property
    def unit(self) -> str:
        return unit_of(self.metric)


def streams(trace: Trace) -> tuple[Stream, ...]:
    """Every measured metric of every device, in the order of the metric table; values derived from
    trials and those that a profiler recorded are left out.
    """
    samples = trace.samples
    if not len(samples):
        return ()
    order = np.lexsort((samples.at_ns, samples.device, samples.metric))
    sorted_samples = samples.take(order)
    pairs = np.stack([sorted_samples.metric, sorted_samples.device])
    cuts = np.flatnonzero((np.diff(pairs) != 0).any(axis=0)) + 1
    bounds = [0, *cuts.tolist(), len(sorted_samples)]
    found = [
        _stream(trace, sorted_samples.take(np.arange(start, end)))
        for start, end in pairwise(bounds)
    ]
    return tuple(
        sorted(
            (one for one in found if one.metric not in _NO_TELEMETRY and len(one.samples)),
            key=lambda one: (place_of(one.metric), one.device),
        )
    )


def _stream(trace: Trace, samples: Samples) -> Stream:
    place, source = int(samples.device[0]), int(samples.source[0])
    metric, finite = trace.strings[int(samples.metric[0])], samples.take(np.isfinite(samples.value))
    if place == NULL:
        return Stream(metric, "", finite)
    device = trace.devices[place]
    facts = dict(trace.sources[source].details) if source != NULL else {}
    identity = device.identity or f"{device.host}/{device.index}"
    return Stream(
        metric,
        device.index,
        finite,
        identity,
        facts.get(f"package.{device.identity}", identity),
        facts.get(f"power_scope.{device.identity}", "device"),
    )


def idle_window(trace: Trace) -> Intervals:
    """When the sampler ran and the workload did not yet, where the run was asked to wait (on the
    run clock).
    """
    for source in trace.sources:
        facts = dict(source.details)
        if "idle_start_ns" in facts and "idle_end_ns" in facts:
            return window(int(facts["idle_start_ns"]), int(facts["idle_end_ns"]))
    return window(0, 0)


def mean_in(stream: Stream, when: Intervals) -> float | None:
    """Time-weighted mean inside the windows; None without a sample there."""
    weight = weights(stream.samples, when)
    return mean(stream.samples.value, weight) if weight.any() else None


def mean(values: F64, weight: I64) -> float:
    """Weighted mean; the weights must not all be 0."""
    return float(np.dot(values, weight) / weight.sum())


def weights(samples: Samples, when: Intervals) -> I64:
    """Overlap of each interval with the windows in ns; 1 for an instant inside them."""
    instants = samples.until_ns <= samples.at_ns
    overlap = inside_ns(Intervals(samples.at_ns, samples.until_ns), when)
    return np.asarray(np.where(instants, contains(when, samples.at_ns).astype(np.int64), overlap))
