"""When a process without device work is in a collective and in no operator: what its host then
seems to run is waiting for other ranks, or for the data to come through.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.host.timeline import HostRows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

HANDING_OVER = "c10d::"
"""How the operators begin that only hand a collective over, or wait for it."""


def in_collectives(
    trace: Trace, rows: HostRows, thread: int, when: Intervals
) -> list[tuple[str, Intervals]]:
    """The parts of a merged set of intervals in which a collective of the thread's process runs and
    none of its operators, by the collective's name; the parts do not overlap.
    """
    recording, pid, _ = (int(value) for value in rows.owners[thread])
    marks, ops = trace.marks, trace.ops
    calls = np.flatnonzero((marks.collective != NULL) & (marks.pid == pid))
    calls = calls[rows.recording[marks.source[calls]] == recording]
    if not len(calls):
        return []
    running = _running(trace, (ops.pid == pid) & (rows.recording[ops.source] == recording))
    left, found = intervals.subtract(when, running), []
    for name in np.unique(marks.name[calls]).tolist():
        own = calls[marks.name[calls] == name]
        spans = intervals.merge(intervals.lasting(marks.start_ns[own], marks.dur_ns[own]))
        held = intervals.intersect(spans, left)
        left = intervals.subtract(left, held)
        if held.total:
            found.append((trace.strings[int(name)], held))
    return found


def _running(trace: Trace, mine: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Intervals:
    """When an operator runs that does something itself."""
    ops = trace.ops
    names = np.unique(ops.name[mine])
    handing = [code for code in names.tolist() if trace.strings[code].startswith(HANDING_OVER)]
    own = mine & ~np.isin(ops.name, handing)
    return intervals.merge(intervals.lasting(ops.start_ns[own], ops.dur_ns[own]))
