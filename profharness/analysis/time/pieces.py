"""Recordings in pieces: several files of one process, or several processes of one file, with time
between them in which nothing was recorded.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.parts.select import by_source
from profharness.trace.pieces import recording_process


def recorded(trace: Trace) -> Intervals | None:
    """The time from the first to the last record of each file, or of each of its processes, merged;
    None where no process recorded in pieces and no file is of several processes.
    """
    processes = Counter(map(recording_process, trace.sources))
    del processes[None]
    if max(processes.values(), default=0) < 2 and not _shares_file(trace):
        return None
    starts, ends = _reach(trace)
    known = ends > starts
    return intervals.merge(Intervals(starts[known], ends[known])) if known.any() else None


def apart(trace: Trace) -> list[Trace]:
    """The processes of a file that holds several, those together that ran at the same time; all of
    a trace whose files are of one process each.
    """
    held = recorded(trace) if _shares_file(trace) else None
    if held is None or len(held) < 2:
        return [trace]
    starts, ends = _reach(trace)
    stretch = np.where(ends > starts, np.searchsorted(held.start, starts, "right"), NULL)
    return [by_source(trace, stretch == place) for place in range(1, len(held) + 1)]


def _shares_file(trace: Trace) -> bool:
    return len({source.path for source in trace.sources}) < len(trace.sources)


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
