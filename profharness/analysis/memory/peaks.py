"""What a process held at most of each device's memory, by what torch's profiler recorded of its
allocator, and rocprofv3 of HSA's (docs/metrics.md#allocator).

A value holds from its instant to the next one of the same process and device, the last one to the
end of the window: what was taken before a window and not freed counts in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Samples, Trace
from profharness.trace.sample_metrics import HSA_ALLOCATED, TORCH_ALLOCATED, TORCH_RESERVED

ALLOCATED_PEAK, RESERVED_PEAK = "torch_allocated_peak", "torch_reserved_peak"
HSA_PEAK = "hsa_allocated_peak"
_OF_DEVICES = (
    (ALLOCATED_PEAK, TORCH_ALLOCATED),
    (RESERVED_PEAK, TORCH_RESERVED),
    (HSA_PEAK, HSA_ALLOCATED),
)
OF_ONE_DEVICE = (f"{ALLOCATED_PEAK}_", f"{RESERVED_PEAK}_", f"{HSA_PEAK}_")
"""How the names of the peaks of single devices begin."""


def recorded(trace: Trace, metric: str = TORCH_ALLOCATED) -> bool:
    """Whether the trace says what an allocator held."""
    code = trace.strings.find(metric)
    return code != NULL and bool((trace.samples.metric == code).any())


def peak(metric: str, *, of_host: bool) -> Callable[[Measurement], Figure]:
    """The highest value on the host, or on any of the devices, of one process."""

    def compute(m: Measurement) -> Figure:
        found = _peaks(m, metric)
        value = found.get(NULL) if of_host else _highest(found)
        place = "the host" if of_host else "a device"
        return Figure(
            value=value,
            unit="B",
            source=m.origin,
            needs="" if value is not None else f"allocations on {place} in the window",
        )

    return compute


def of_each_device(m: Measurement) -> dict[str, Figure]:
    """The peaks of each device, by its number; empty where there is one device at most. Devices of
    one number also have their rank or host in the name.
    """
    if not any(recorded(m.trace, metric) for _, metric in _OF_DEVICES):
        return {}
    peaks = {name: _peaks(m, metric) for name, metric in _OF_DEVICES}
    labels = _labels(
        m.trace, sorted({place for found in peaks.values() for place in found} - {NULL})
    )
    return {
        f"{name}_{labels[place]}": Figure(value=value, unit="B", source=m.origin)
        for name, found in peaks.items()
        for place, value in found.items()
        if place != NULL and len(found.keys() - {NULL}) > 1
    }


def _labels(trace: Trace, places: list[int]) -> dict[int, str]:
    """A name for each of these devices: its number, and before it what tells it from others of that
    number: rank, else host, else both, else its place among the devices of the trace.
    """
    alike: dict[str, list[int]] = {}
    for place in places:
        alike.setdefault(trace.devices[place].index, []).append(place)
    labels: dict[int, str] = {}
    for index, group in alike.items():
        devices = [trace.devices[place] for place in group]
        ranks = ["" if device.rank is None else f"r{device.rank}_" for device in devices]
        hosts = [f"{device.host}_" if device.host else "" for device in devices]
        both = [host + rank for host, rank in zip(hosts, ranks, strict=True)]
        ways = ([""] * len(group), ranks, hosts, both, [f"{place}_" for place in group])
        before = next(way for way in ways if len(set(way)) == len(group))
        labels |= {place: f"{way}{index}" for place, way in zip(group, before, strict=True)}
    return labels


def _highest(found: dict[int, float]) -> float | None:
    return max((value for place, value in found.items() if place != NULL), default=None)


def _peaks(m: Measurement, metric: str) -> dict[int, float]:
    """The highest value by device in the windows, in bytes; NULL stands for the host."""
    samples = m.trace.samples
    rows = np.flatnonzero(samples.metric == m.trace.strings.find(metric))
    if not len(rows) or not len(m.on_host):
        return {}
    order = np.lexsort((samples.at_ns[rows], samples.source[rows], samples.device[rows]))
    samples = samples.take(rows[order])
    inside = intervals.inside_ns(_holding(samples, int(m.on_host.end.max())), m.on_host) > 0
    inside |= intervals.contains(m.on_host, samples.at_ns)
    places, which = np.unique(samples.device[inside], return_inverse=True)
    highest = np.zeros(len(places))
    np.maximum.at(highest, which, samples.value[inside])
    return dict(zip(places.tolist(), highest.tolist(), strict=True))


def _holding(samples: Samples, end_ns: int) -> Intervals:
    """How long each value holds; the last one of a process and device to `end_ns`."""
    at = samples.at_ns
    same = (np.diff(samples.device) == 0) & (np.diff(samples.source) == 0)
    until = np.append(np.where(same, at[1:], end_ns), end_ns)
    return Intervals(at, np.maximum(until, at))
