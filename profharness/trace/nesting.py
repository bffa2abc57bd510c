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

# where one pass over all threads, or over all rows, is quicker than one for each thread or level
_FEW_THREADS = 256
_FEW_LEVELS = 1024
_ROWS_OF_A_LEVEL = 32


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
    if len(borders) > _FEW_THREADS:
        begin, end = _one_behind_another(thread, start_ns, start_ns + dur_ns)
        depth[order], parent[order] = _one_thread(begin[order], (end - begin)[order], order)
        return Nesting(depth, parent, order)
    for rows in np.split(order, borders):
        if len(rows):
            depth[rows], parent[rows] = _one_thread(start_ns[rows], dur_ns[rows], rows)
    return Nesting(depth, parent, order)


def _one_behind_another(thread: I64, *times: I64) -> list[I64]:
    """The times as ranks that keep the order inside of each thread, and in which all of one thread
    lie behind all of the one before: many threads are then treated as one.
    """
    codes = np.unique(thread, return_inverse=True)[1].reshape(-1)
    distinct, ranks = np.unique(np.concatenate(times), return_inverse=True)
    parts = np.split(ranks.reshape(-1), len(times))
    return [codes * (len(distinct) + 1) + part for part in parts]


def _in_order(start_ns: I64, dur_ns: I64, thread: I64) -> I64:
    """Rows by thread, start, longest first, then row. Tracers write each thread's spans in this
    order, so that most files need no sort of times.
    """
    if np.all(thread[1:] >= thread[:-1]):  # as the rows of one thread are
        order: I64 = np.arange(len(thread))
        starts, durs, groups = start_ns, dur_ns, thread
    else:
        order = np.argsort(_narrow(thread), kind="stable")
        starts, durs, groups = start_ns[order], dur_ns[order], thread[order]
    later, longer = np.diff(starts), np.diff(durs)
    if not np.all((later > 0) | ((later == 0) & (longer <= 0)) | (np.diff(groups) != 0)):
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
    borders = np.flatnonzero(np.diff(depth[by_depth])) + 1
    if len(borders) > _FEW_LEVELS and len(borders) * _ROWS_OF_A_LEVEL > len(rows):
        return depth, _parents_one_by_one(start, end, depth, rows)
    levels = np.split(by_depth, borders)
    for level, inner in pairwise(levels):
        outer = level[lasting[level]]
        if not len(outer):  # only where spans overlap without nesting
            continue
        nearest = np.searchsorted(outer, inner) - 1
        candidate = outer[np.maximum(nearest, 0)]
        holds = (nearest >= 0) & (end[candidate] > start[inner])
        parent[inner[holds]] = rows[candidate[holds]]
    return depth, parent


def _parents_one_by_one(start: I64, end: I64, depth: I64, rows: I64) -> I64:
    """The parent rows of spans in order, in time that does not depend on how deep they nest."""
    parent = np.full(len(rows), NULL, np.int64)
    last: list[tuple[int, int]] = [(0, NULL)] * (int(depth.max()) + 1)  # end and row, by depth
    spans = zip(start.tolist(), end.tolist(), depth.tolist(), rows.tolist(), strict=True)
    for at, (begin, stop, level, row) in enumerate(spans):
        if level:
            holder_end, holder = last[level - 1]
            if holder != NULL and holder_end > begin:
                parent[at] = holder
        if stop > begin:
            last[level] = stop, row
    return parent


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
    order = nesting.order
    borders = np.flatnonzero(np.diff(thread[order])) + 1
    if len(borders) > _FEW_THREADS:
        [ranks] = _one_behind_another(
            np.concatenate((thread, at_thread)), np.concatenate((start_ns, at_ns))
        )
        begin, asked_at = ranks[: len(thread)], ranks[len(thread) :]
        last = np.searchsorted(begin[order], asked_at, side="right") - 1
        nearest = order[np.maximum(last, 0)]
        found = np.where((last >= 0) & (thread[nearest] == at_thread), nearest, NULL)
        borders, order = borders[:0], order[:0]
    for rows in np.split(order, borders):
        if not len(rows):
            continue
        asked = np.flatnonzero(at_thread == thread[rows[0]])
        last = np.searchsorted(start_ns[rows], at_ns[asked], side="right") - 1
        found[asked] = np.where(last >= 0, rows[np.maximum(last, 0)], NULL)
    end_ns = start_ns + dur_ns
    first_after = end_ns + 1 if with_end else end_ns
    ended = np.flatnonzero((found != NULL) & (first_after[found] <= at_ns))
    while len(ended):  # only of these the span around may have ended too
        around = nesting.parent[found[ended]]
        found[ended] = around
        ended = ended[(around != NULL) & (first_after[around] <= at_ns[ended])]
    return found
