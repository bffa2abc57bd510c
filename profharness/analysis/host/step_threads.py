"""Which thread of each process runs its steps."""

from __future__ import annotations

import numpy as np

from profharness.analysis.host.timeline import OPS, HostRows, thread_of
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def step_threads(trace: Trace, rows: HostRows, when: Intervals) -> list[int]:
    """One thread of each process that has operators in the window: the one that marks its steps if
    that has operators, else the one with most time in outermost operators. Numbers as in
    `HostRows.thread`, rising.
    """
    ops = rows.table == OPS
    outer = np.flatnonzero(ops)[trace.ops.depth[rows.row[ops]] <= 0]
    inside = intervals.inside_ns(Intervals(rows.start[outer], rows.end[outer]), when)
    in_ops = np.bincount(rows.thread[outer], inside, len(rows.owners))
    marking = _marking(trace, rows)
    chosen: dict[tuple[int, int], int] = {}
    for thread in np.argsort(-in_ops, kind="stable").tolist():
        process = int(rows.owners[thread, 0]), int(rows.owners[thread, 1])
        if in_ops[thread] > 0 and (process not in chosen or thread in marking):
            chosen[process] = thread
    return sorted(chosen.values())


def _marking(trace: Trace, rows: HostRows) -> frozenset[int]:
    """The threads that have marks of steps or trials."""
    marks = trace.marks
    steps = [trace.strings.find(kind) for kind in ("step", "trial")]
    own = np.flatnonzero(np.isin(marks.kind, [code for code in steps if code != NULL]))
    if not len(own):
        return frozenset()
    first = first_rows(pack([marks.source[own], marks.pid[own], marks.tid[own]]))[0]
    return frozenset(
        thread_of(rows, int(marks.source[row]), int(marks.pid[row]), int(marks.tid[row]))
        for row in own[first].tolist()
    )
