"""Recordings in pieces: several files of one process, with time between them that no file holds."""

from __future__ import annotations

from collections import Counter

import numpy as np

from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.pieces import recording_process


def recorded(trace: Trace) -> Intervals | None:
    """The time from the first to the last record of each file, merged over all files; None where no
    process recorded in pieces.
    """
    processes = [recording_process(source) for source in trace.sources]
    times = Counter(process for process in processes if process is not None)
    if not any(count > 1 for count in times.values()):
        return None
    starts, ends = _reach(trace)
    known = ends > starts
    return intervals.merge(Intervals(starts[known], ends[known])) if known.any() else None


def _reach(trace: Trace) -> tuple[I64, I64]:
    """For each source the first start and the last end of its work and its host's calls; the end
    before the start where it holds none.
    """
    limits = np.iinfo(np.int64)
    starts = np.full(len(trace.sources), limits.max, np.int64)
    ends = np.full(len(trace.sources), limits.min, np.int64)
    for table in (trace.kernels, trace.copies, trace.api, trace.ops):
        held = table.start_ns != NULL
        np.minimum.at(starts, table.source[held], table.start_ns[held])
        np.maximum.at(ends, table.source[held], (table.start_ns + table.dur_ns)[held])
    return starts, ends
