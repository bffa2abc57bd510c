"""The backward pass on a thread of its own: which rows of it the main thread waited for.

torch runs it on one thread per device, and the calling thread waits in `run_backward`. What says so
is in files with Python frames only; without them it shows as a stretch of the main thread without
any operator or call, in which another thread runs backward nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.scope import Scope
from profharness.analysis.host.timeline import MARKS, OPS
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|^[A-Z]\w*Backward\w*$")


@dataclass(frozen=True, eq=False)
class Handed:
    """Stretches of other threads that the main thread began and waited for: `start` to `end` on
    `thread`. `first` is when the first thread began in the same wait, and `resume` when the main
    thread went on: NULL for all but the one that ended last there.
    """

    thread: I64
    start: I64
    end: I64
    first: I64
    resume: I64


def handed_over(scope: Scope) -> Handed:
    """The backward passes in the window, by thread and start."""
    blanks = _blanks(scope)
    parts = [_of_thread(scope, thread, blanks) for thread in _backward_threads(scope)]
    none = np.empty(0, np.int64)
    thread, start, end = (
        np.concatenate([none, *(part[column] for part in parts)]) for column in range(3)
    )
    first, resume = start.copy(), np.full(len(thread), NULL, np.int64)
    wait = _inside(blanks, end)
    for number in distinct(wait[wait != NULL]).tolist():
        members = np.flatnonzero(wait == number)
        first[members] = start[members].min()
        last = members[np.argmax(end[members])]
        if end[last] < blanks.end[number]:
            resume[last] = blanks.end[number]
    return Handed(thread, start, end, first, resume)


def _blanks(scope: Scope) -> Intervals:
    """Where the main thread is in no operator and no call."""
    rows = scope.rows
    mine = (rows.thread == scope.main) & (rows.table != MARKS)
    busy = intervals.merge(Intervals(rows.start[mine], rows.end[mine]))
    return intervals.complement(busy, scope.start, scope.host_end)


def _backward_threads(scope: Scope) -> list[int]:
    rows = scope.rows
    other = (rows.table == OPS) & (rows.thread != scope.main)
    names = [
        name
        for name in distinct(rows.name[other]).tolist()
        if name != NULL and _BACKWARD.search(scope.trace.strings[name])
    ]
    threads: list[int] = distinct(rows.thread[other & np.isin(rows.name, names)]).tolist()
    return threads


def _of_thread(scope: Scope, thread: int, blanks: Intervals) -> tuple[I64, I64, I64]:
    """Thread, start and end of each stretch that begins in a blank of the main thread. One goes on
    for as long as the thread was busy when the next blank began.
    """
    rows = scope.rows
    mine = (rows.thread == thread) & (rows.table == OPS)
    busy = intervals.merge(Intervals(rows.start[mine], rows.end[mine]))
    inside = (busy.start >= scope.start) & (busy.end < scope.host_end)
    start, end = busy.start[inside], busy.end[inside]
    blank = _inside(blanks, start)
    start, end, blank = start[blank != NULL], end[blank != NULL], blank[blank != NULL]
    goes_on = (blank[1:] == blank[:-1]) | (end[:-1] > blanks.start[blank[1:]])
    first = np.concatenate(([True], ~goes_on))[: len(blank)]
    last = np.concatenate((~goes_on, [True]))[: len(blank)]
    return np.full(int(first.sum()), thread, np.int64), start[first], end[last]


def _inside(blanks: Intervals, at: I64) -> I64:
    """The blank that holds each instant, NULL for none."""
    if not len(blanks):
        return np.full(len(at), NULL, np.int64)
    found = np.searchsorted(blanks.start, at, "right") - 1
    holds = (found >= 0) & (at < blanks.end[np.maximum(found, 0)])
    return np.where(holds, found, NULL)
