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
    its package's power, `scope` what that power covers. `host` is named where several were sampled:
    each then has streams of its own, `device` reads `n1/0`, and `package` holds the host too, since
    nodes of one kind have their devices at the same PCI addresses.
    """

    metric: str
    device: str
    samples: Samples
    identity: str = ""
    package: str = ""
    scope: str = ""
    host: str = ""

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
    hosts = _hosts(trace)
    owner = hosts[samples.source]
    several = len(np.unique(owner)) > 1
    order = np.lexsort((samples.at_ns, owner, samples.device, samples.metric))
    sorted_samples = samples.take(order)
    pairs = np.stack([sorted_samples.metric, sorted_samples.device, owner[order]])
    cuts = np.flatnonzero((np.diff(pairs) != 0).any(axis=0)) + 1
    bounds = [0, *cuts.tolist(), len(sorted_samples)]
    found = [
        _stream(trace, sorted_samples.take(np.arange(start, end)), several=several)
        for start, end in pairwise(bounds)
    ]
    return tuple(
        sorted(
            (one for one in found if one.metric not in _NO_TELEMETRY and len(one.samples)),
            key=lambda one: (place_of(one.metric), one.host, one.device),
        )
    )


def _hosts(trace: Trace) -> I64:
    """The host of each source as a number, with that of samples without a source at the end, where
    NULL points to: they count as those of the first host.
    """
    names = [source.host for source in trace.sources] or [""]
    known = list(dict.fromkeys(names))
    return np.array([*(known.index(name) for name in names), 0], np.int64)


def _stream(trace: Trace, samples: Samples, *, several: bool) -> Stream:
    place, source = int(samples.device[0]), int(samples.source[0])
    metric, finite = trace.strings[int(samples.metric[0])], samples.take(np.isfinite(samples.value))
    host = trace.sources[source].host if several and source != NULL else ""
    if place == NULL:
        return Stream(metric, "", finite, host=host)
    device = trace.devices[place]
    facts = dict(trace.sources[source].details) if source != NULL else {}
    identity = device.identity or f"{device.host}/{device.index}"
    package = facts.get(f"package.{device.identity}", identity)
    return Stream(
        metric,
        f"{host}/{device.index}" if host else device.index,
        finite,
        identity,
        f"{host}/{package}" if host else package,
        facts.get(f"power_scope.{device.identity}", "device"),
        host,
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
