"""What a device may have run unrecorded and that comes again in the steps, before the same work: it
may be how the work is queued (docs/metrics.md#not-recorded).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.time.device_work import Work
from profharness.analysis.time.steps import Step
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

_REGULAR = 3
"""Two steps may agree by chance."""


def recurring(
    trace: Trace, work: Work, stretches: Intervals, steps: Sequence[Step], device: int
) -> Intervals:
    """Those stretches of a device, a merged set, that end in work which ends one in most of the
    steps of a process there, and in three at least; empty for a device with one stream.
    """
    busy = work.busy(device)
    rows = busy.at(stretches.end)
    if not (rows != NULL).any() or len(distinct(work.stream[busy.rows])) < 2:
        return intervals.EMPTY
    names = np.concatenate((trace.kernels.name, trace.copies.kind))[rows]
    _, name = np.unique(names, return_inverse=True)
    kept = np.zeros(len(stretches), np.bool_)
    for spans in _spans(steps, device):
        step = np.searchsorted(spans.start, stretches.end, "right") - 1
        held = (rows != NULL) & (step >= 0) & (stretches.end < spans.end[step])
        seen = np.unique(name[held] * len(spans) + step[held]) // len(spans)
        times = np.bincount(seen, minlength=int(name.max()) + 1)
        kept |= held & (times >= max(_REGULAR, len(spans) // 2 + 1))[name]
    return Intervals(stretches.start[kept], stretches.end[kept])


def _spans(steps: Sequence[Step], device: int) -> list[Intervals]:
    """When the steps of each process ran on the device, in order; of steps that are known by their
    marks alone these.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for step in steps:
        times = [(one.start_ns, one.end_ns) for one in step.ran if one.device == device]
        if times or not step.ran:
            found.setdefault(step.process, []).extend(times or [step.span_ns])
    return [
        intervals.of([start for start, _ in spans], [end for _, end in spans])
        for spans in map(sorted, found.values())
    ]
