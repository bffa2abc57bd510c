"""Which host call launched which device record: the join behind the arrows of a timeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.trace.model import I64, NULL, Trace
from profharness.writers.groups import group_rows


@dataclass(frozen=True)
class Launches:
    """Device records by launching call, with kernels numbered from 1 and copies after them.

    `events[offsets[i]:offsets[i + 1]]` are those of row i of the host calls; `linked` says for each event
    number (from 1) whether some call launched it.
    """

    events: I64
    offsets: I64
    linked: I64

    @property
    def counts(self) -> I64:
        """Launched records per host call."""
        return np.diff(self.offsets)


def find_launches(trace: Trace, api_process: I64, kernel_process: I64, copy_process: I64) -> Launches:
    """Join by (source, process, correlation). Of several calls with one correlation the first is the launch.

    Correlation 0 is no id in CUPTI, roctracer or rocprofiler, so it links nothing.
    """
    calls = len(trace.api)
    source = np.concatenate((trace.api.source, trace.kernels.source, trace.copies.source))
    process = np.concatenate((api_process, kernel_process, copy_process))
    correlation = np.concatenate((trace.api.correlation, trace.kernels.correlation, trace.copies.correlation))
    known = np.flatnonzero((correlation != NULL) & (correlation != 0))
    groups = group_rows(source[known], process[known], correlation[known])
    is_call = known < calls
    launch = np.full(len(groups), NULL, np.int64)
    by_start = np.flatnonzero(is_call)
    by_start = by_start[np.argsort(-trace.api.start_ns[known[by_start]], kind="stable")]
    launch[groups.of[by_start]] = known[by_start]  # the last one written is the earliest
    call = launch[groups.of[~is_call]]
    event = known[~is_call] - calls + 1
    found = call != NULL
    call, event = call[found], event[found]
    order = np.argsort(call, kind="stable")
    linked = np.zeros(len(trace.kernels) + len(trace.copies) + 1, np.int64)
    linked[event] = 1
    offsets = np.concatenate(([0], np.cumsum(np.bincount(call, minlength=calls)))).astype(np.int64)
    return Launches(event[order], offsets, linked)
