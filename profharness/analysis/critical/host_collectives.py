"""Collectives on the CPU: when the main thread handed each over, and whether it waited for its end.

A thread of the library runs them, and the main thread's records say nothing of a wait. It is taken
to have waited where nothing of it began or ended around the collective's end, and the collective
fills at least half of this silence: a program that goes on computing meanwhile has operators there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.scope import Scope
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
_MOST_OF_SILENCE = 0.5


@dataclass(frozen=True, eq=False)
class HostCollectives:
    """Rows of the trace's marks, with start and end; `waits_from` is when the main thread began to
    wait, NULL where it did not.
    """

    mark: I64
    start: I64
    end: I64
    waits_from: I64


def host_collectives(scope: Scope) -> HostCollectives:
    """The collectives that lie in the main thread's part of the window."""
    marks = scope.trace.marks
    start, end = marks.start_ns, marks.start_ns + marks.dur_ns
    inside = (start > scope.start) & (end < scope.host_end) & (marks.dur_ns > 0)
    mark = np.flatnonzero((marks.collective != NULL) & inside)
    start, end = start[mark], end[mark]
    mine = scope.rows.thread == scope.main
    borders = np.unique(
        np.concatenate(
            (scope.rows.start[mine], scope.rows.end[mine], [scope.start, scope.host_end])
        )
    )
    after = np.clip(np.searchsorted(borders, end, "right"), 1, len(borders) - 1)
    silent, goes_on = borders[after - 1], borders[after]
    begun = np.maximum(silent, start)
    waited = end - begun >= _MOST_OF_SILENCE * (goes_on - silent)
    return HostCollectives(mark, start, end, np.where(waited & (end > begun), begun, NULL))
