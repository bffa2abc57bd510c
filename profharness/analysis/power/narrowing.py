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
from profharness.analysis.records import IdleCauses, Partition
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.stats.streams import Stream, mean, weights
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.units import format_share

MIN_SAMPLES = 10
"""Fewer samples in the window say nothing of it: of as many the standard error itself is known to a
quarter.
"""
_AT_MOST = (("gpu_activity_mean", 0.01), ("gpu_percent", 0.01))
_AT_LEAST = (("cu_active", 1.0), ("sm_activity", 1.0))
"""Metrics, the better one first, and what makes a share of their values."""
_RESOLUTION = 0.01
"""Drivers give the GPU % in whole per cents and do not say how they round."""
_SIGMAS = 2.0


@dataclass(frozen=True)
class Narrowing:
    """For how much of the time in which they may have run unrecorded work devices were busy at
    least, and idle at least, in ns, and the words for where these come from; empty where telemetry
    says nothing of it.
    """

    least: int = 0
    idle: int = 0
    said: tuple[str, ...] = ()


_NOTHING = Narrowing()


def narrowing(
    trace: Trace,
    idle: IdleAnalysis,
    windows: Windows,
    devices: Sequence[int],
    every: Sequence[Stream],
) -> Narrowing:
    """What the telemetry of devices (positions in `trace.devices`) says in their windows."""
    least, not_busy, said = 0, 0, list[str]()
    for position in devices:
        when = windows.on(position)
        unknown = intervals.intersect(idle.not_recorded(position), when).total
        known = intervals.intersect(idle.work.busy(position).times, when).total
        own = {} if position == NULL else of_device(trace.devices[position], every)
        at_most, at_least = unknown, 0
        if (high := _mean(own, _AT_MOST, when)) is not None:
            share = min(high[0] + high[1] + _RESOLUTION, 1.0)
            at_most = min(max(round(share * when.total) - known, 0), unknown)
            said.append(f"the driver's GPU % is {format_share(high[0])} in the window")
        if (low := _mean(own, _AT_LEAST, when)) is not None:
            share = max(low[0] - low[1], 0.0)
            at_least = min(max(round(share * when.total) - known, 0), at_most)
            said.append(f"counters say {format_share(low[0])} active")
        least, not_busy = least + at_least, not_busy + unknown - at_most
    return Narrowing(least, not_busy, tuple(dict.fromkeys(said))) if least + not_busy else _NOTHING


def _mean(
    own: Mapping[str, Stream], metrics: Sequence[tuple[str, float]], when: Intervals
) -> tuple[float, float] | None:
    """The mean share of the first metric that was sampled often enough in the window, and two
    standard errors; None without one.
    """
    for metric, scale in metrics:
        stream = own.get(metric)
        if stream is None:
            continue
        weight = weights(stream.samples, when)
        inside = stream.samples.value[weight > 0] * scale
        if len(inside) < MIN_SAMPLES:
            continue
        error = _SIGMAS * float(np.std(inside, ddof=1)) / len(inside) ** 0.5
        return mean(stream.samples.value, weight) * scale, error
    return None


def with_idle(split: Partition, idle_ns: int) -> Partition:
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
