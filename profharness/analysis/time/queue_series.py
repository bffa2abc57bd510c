"""Queue depth over time, stream by stream: how many pieces of work are launched and not finished
(docs/metrics.md#queue-series).
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.records import QueueRow
from profharness.analysis.time.counts import device_keys
from profharness.analysis.time.device_work import streams_of
from profharness.stats import intervals
from profharness.stats.intervals import I64, Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

SLICES = 200
"""Equal parts of the window that a series has a mean of."""
MOST_STREAMS = 64
"""So many streams have a series: those with most work queued."""


def queue_series(m: Measurement) -> tuple[QueueRow, ...]:
    """A series for each stream, the deepest first, from the first instant of its device's window
    to the last; none where no work is linked to its launch, or
    lies on no time axis.
    """
    if m.timeless or not m.has_links:
        return ()
    work, keys = m.work, device_keys(m.trace)
    rows = []
    for members in streams_of(work):
        when = m.windows.on(int(work.device[members[0]]))
        if not len(when):
            continue
        first, last = int(when.start[0]), int(when.end[-1])
        slices = min(SLICES, last - first)
        bounds = first + (last - first) * np.arange(slices + 1) // slices
        queued = Intervals(
            np.maximum(work.launched[members], first), np.minimum(work.end[members], last)
        )
        depth = mean_depth(queued, bounds)
        device, stream = int(work.device[members[0]]), int(work.stream[members[0]])
        if depth.any():
            rows.append(
                QueueRow(
                    device=keys[device],
                    stream=_name(m.trace, stream),
                    mean=float((depth * np.diff(bounds)).sum() / (last - first)),
                    peak=int(intervals.running(queued).value.max(initial=0)),
                    end_ns=last,
                    at_ns=tuple(bounds[:-1].tolist()),
                    depth=tuple(depth.tolist()),
                )
            )
    return tuple(sorted(rows, key=_order)[:MOST_STREAMS])


def mean_depth(queued: Intervals, bounds: I64) -> intervals.F64:
    """The mean number of open intervals in each slice between the bounds (in ns, rising)."""
    upto = _integral(queued.start, bounds) - _integral(queued.end, bounds)
    mean: intervals.F64 = np.diff(upto) / np.diff(bounds)
    return mean


def _integral(times: I64, at: I64) -> I64:
    """For each `at` the sum over the times before it of how far they lie before it."""
    ordered = np.sort(times)
    before = np.searchsorted(ordered, at)
    # differences from the first bound keep the sums small enough for int64
    sums = np.concatenate(([0], np.cumsum(ordered - at[0])))
    integral: I64 = before * (at - at[0]) - sums[before]
    return integral


def _name(trace: Trace, stream: int) -> str:
    return "" if stream == NULL else trace.streams[stream].name


def _order(row: QueueRow) -> tuple[float, str, str]:
    return -row.mean, row.device, row.stream
