"""Nested spans per thread: depth, parent, and the innermost span at a time. Vectorised; no I/O.

Spans of one thread are taken to nest (as calls do). A span without length contains no other, so
that traces in whole microseconds, where many short calls have length zero at one start, do not grow
towers of depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import coded, pack
from profharness.trace.columns.table import NULL

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nesting:
    """For each span: `depth` (0 outermost) and the row of its `parent` (NULL for none). `order`
    sorts rows by thread, start, length.
    """

    depth: I32
    parent: I64
    order: I64


def threads(pid: I64, tid: I64) -> I64:
    """One small number per distinct (pid, tid)."""
    return coded(pack([tid, pid]))[1]


def nest(start_ns: I64, dur_ns: I64, thread: I64) -> Nesting:
    """Depth and parent of each span among those of its thread.

    The depth is the number of spans open at the start: those before it in order (start, then
    longest first, then row) less those that have ended. Spans that begin where another ends are
    siblings.
    """
    order = _in_order(start_ns, dur_ns, thread)
    depth, parent = np.zeros(len(order), np.int32), np.full(len(order), NULL, np.int64)
    borders = np.flatnonzero(np.diff(thread[order])) + 1
    for rows in np.split(order, borders):
        if len(rows):
            depth[rows], parent[rows] = _one_thread(start_ns[rows], dur_ns[rows], rows)
    return Nesting(depth, parent, order)


def _in_order(start_ns: I64, dur_ns: I64, thread: I64) -> I64:
    """Rows by thread, start, longest first, then row. Tracers write each thread's spans in this
    order, so that most files need no sort of times.
    """
    order: I64 = np.argsort(_narrow(thread), kind="stable")
    later, longer = np.diff(start_ns[order]), np.diff(dur_ns[order])
    if not np.all((later > 0) | ((later == 0) & (longer <= 0)) | (np.diff(thread[order]) != 0)):
        order = np.lexsort((-dur_ns, start_ns, thread))
    return order


def _narrow(numbers: I64) -> npt.NDArray[np.integer[Any]]:
    """The same in 16 bits, where they fit: these are sorted in time that is linear."""
    fit = (
        len(numbers) > 0
        and int(numbers.min()) >= 0
        and int(numbers.max()) <= np.iinfo(np.uint16).max
    )
    return numbers.astype(np.uint16) if fit else numbers


def _one_thread(start: I64, dur: I64, rows: I64) -> tuple[I64, I64]:
    """Depth and parent row of spans in order."""
    end = start + dur
    lasting = dur > 0
    before: I64 = np.cumsum(lasting) - lasting
    depth = before - np.searchsorted(np.sort(end[lasting]), start, side="right")
    parent = np.full(len(rows), NULL, np.int64)
    by_depth = np.argsort(_narrow(depth), kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for level, inner in pairwise(levels):
        outer = level[lasting[level]]
        if not len(outer):  # only where spans overlap without nesting
            continue
        nearest = np.searchsorted(outer, inner) - 1
        candidate = outer[np.maximum(nearest, 0)]
        holds = (nearest >= 0) & (end[candidate] > start[inner])
        parent[inner[holds]] = rows[candidate[holds]]
    return depth, parent


def innermost(
    start_ns: I64,
    dur_ns: I64,
    thread: I64,
    nesting: Nesting,
    at: tuple[I64, I64],
    *,
    with_end: bool = True,
) -> I64:
    """The row of the innermost span that contains each time `at[0]` on each thread `at[1]`; NULL
    for none. A span contains its start, and its end too where `with_end` says so.
    """
    at_ns, at_thread = at
    found = np.full(len(at_ns), NULL, np.int64)
    if not len(start_ns):
        return found
    borders = np.flatnonzero(np.diff(thread[nesting.order])) + 1
    for rows in np.split(nesting.order, borders):
        asked = np.flatnonzero(at_thread == thread[rows[0]])
        last = np.searchsorted(start_ns[rows], at_ns[asked], side="right") - 1
        found[asked] = np.where(last >= 0, rows[np.maximum(last, 0)], NULL)
    end_ns = start_ns + dur_ns
    first_after = end_ns + 1 if with_end else end_ns
    while len(ended := np.flatnonzero((found != NULL) & (first_after[found] <= at_ns))):
        found[ended] = nesting.parent[found[ended]]
    return found
