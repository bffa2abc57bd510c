"""What processes held of each memory in the windows of a measurement (docs/metrics.md#memory)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.memory.alive import by_process
from profharness.analysis.memory.records import HeldPeak
from profharness.analysis.operators.nests import Mask
from profharness.analysis.time.counts import device_keys
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace


@dataclass(frozen=True, eq=False)
class Held:
    """One process's rows in order of time, and which of their values hold in the windows."""

    rows: I64
    at: I64
    allocated: I64
    inside: Mask


def held(m: Measurement, rows: I64) -> Held:
    """Of one process's rows on one device in order of time. There is a window."""
    table = m.trace.allocations
    at = table.at_ns[rows]
    end = max(int(m.on_host.end.max()), int(at[-1]))
    holding = Intervals(at, np.append(at[1:], end))
    inside = intervals.inside_ns(holding, m.on_host) > 0
    return Held(rows, at, table.allocated[rows], inside | intervals.contains(m.on_host, at))


def device_name(trace: Trace, device: int) -> str | None:
    """How a device of the trace is called; None for the host."""
    if device == NULL:
        return None
    keys = device_keys(trace)
    return keys.get(device, trace.devices[device].index)


def held_peaks(m: Measurement) -> tuple[HeldPeak, ...]:
    """The peak of each memory, by those processes that took or freed some of it in the windows: the
    sum of their peaks.
    """
    table = m.trace.allocations
    if not len(table) or not len(m.on_host):
        return ()
    groups = table.kept(by_process, (), lambda: by_process(table))
    found: dict[int, HeldPeak] = {}
    for rows in groups:
        if not intervals.contains(m.on_host, table.at_ns[rows]).any():
            continue
        of_process = held(m, rows)
        values = table.reserved[rows][of_process.inside]
        device = int(table.device[rows[0]])
        reserves = device != NULL and bool((values != NULL).all())
        peak = int(of_process.allocated[of_process.inside].max())
        least = int(of_process.allocated[of_process.inside].min())
        reserved = int(values.max()) if reserves else None
        known = found.get(device)
        found[device] = HeldPeak(
            device=device_name(m.trace, device),
            processes=1 + (known.processes if known else 0),
            peak_bytes=peak + (known.peak_bytes if known else 0),
            least_bytes=least + (known.least_bytes if known else 0),
            reserved_peak_bytes=_sum(reserved, known),
            capacity_bytes=m.trace.devices[device].memory_bytes if device != NULL else None,
        )
    return tuple(found[device] for device in sorted(found))


def _sum(reserved: int | None, known: HeldPeak | None) -> int | None:
    if known is None or reserved is None:
        return reserved
    return None if known.reserved_peak_bytes is None else reserved + known.reserved_peak_bytes
