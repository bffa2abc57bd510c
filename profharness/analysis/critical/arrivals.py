"""What a piece of device work could have waited for: its launch, the work before it on its stream,
and work of another stream that an event stands for.

Positions count in `Scope.work`, which lies in order of start. A cause has ended when the piece
starts, and stands before it in that order, so that causes never form a circle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.scope import Scope
from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.grouping import pack
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_JUST_NS = 50_000  # from the end of awaited work on another stream: up to 20 us on AMD devices
_MOST_STEPS = 1000  # back through other streams' work; behind so many the awaited one is not found
USUAL_GAP_NS = 10_000
"""A start that comes later than this after its last known cause waited for something else."""
LONGEST_LATENCY_NS = 100_000
"""What is usual on an empty stream never counts as more: longer delays wait for something."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Per piece of work: `start` and `end` in the window, the row of its launching call with its
    start (NULL for none, or one that began after the piece), and positions of the earlier pieces.
    """

    start: I64
    end: I64
    call: I64
    launched: I64
    before: I64
    """The piece that ended last on the same stream."""
    awaited: I64
    """The piece that ended last on another stream, where the launch stands behind an event wait; or
    just before the start, where nothing else explains it.
    """
    behind_wait: Mask
    latency_ns: int
    """The usual time from a launch to the start on an empty stream."""
    gap_ns: int
    """The usual time from the end of the stream's work to the next start, where that was launched
    before.
    """


def arrivals(scope: Scope) -> Arrivals:
    """The possible causes of each start in the window."""
    records, rows = scope.records, scope.work
    start = np.maximum(records.start[rows], scope.start)
    end = np.minimum(records.end[rows], scope.end)
    call = records.call[rows]
    api = records.api
    launched = api.start_ns[np.maximum(call, 0)] if len(api) else np.full(len(rows), NULL)
    known = (call != NULL) & (launched <= records.start[rows])
    call = np.where(known, call, NULL)
    launched = np.where(known, launched, NULL)
    stream = pack([records.device[rows], records.stream[rows]]) if len(rows) else rows
    before = _before_on_stream(stream, start, end)
    behind = _behind_wait(scope, call)
    ended = np.where(before == NULL, scope.start, end[np.maximum(before, 0)])
    late = start - np.maximum(np.maximum(ended, launched), scope.start) > USUAL_GAP_NS
    asked = np.where(launched == NULL, scope.start - 1, launched)
    awaited = np.full(len(rows), NULL, np.int64)
    waiting = np.flatnonzero(behind | late)
    found = _latest_elsewhere(waiting, stream, start, end, asked)
    just_ended = start[waiting] - end[np.maximum(found, 0)] <= _JUST_NS
    awaited[waiting] = np.where(behind[waiting] | just_ended, found, NULL)
    empty = known & ~behind & (ended <= launched)
    latency = min(middle((start - launched)[empty]), LONGEST_LATENCY_NS)
    queued = known & (before != NULL) & ~behind & (launched + latency <= ended)
    gap = min(middle((start - ended)[queued]), USUAL_GAP_NS)
    return Arrivals(start, end, call, launched, before, awaited, behind, latency, gap)


def middle(values: I64) -> int:
    """The lower median, 0 of nothing."""
    if not len(values):
        return 0
    place = (len(values) - 1) // 2
    return int(np.partition(values, place)[place])


def _before_on_stream(stream: I64, start: I64, end: I64) -> I64:
    """For each piece the one of its stream that ended last before it started."""
    before = np.full(len(stream), NULL, np.int64)
    order = np.argsort(stream, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(stream[order])) + 1):
        if len(rows) > 1:
            before[rows] = _before(rows, start, end)
    return before


def _before(rows: I64, start: I64, end: I64) -> I64:
    if np.all(end[rows[:-1]] <= start[rows[1:]]):
        return np.concatenate(([NULL], rows[:-1]))
    by_end = rows[np.lexsort((rows, end[rows]))]
    place = np.searchsorted(end[by_end], start[rows], "right") - 1
    while True:  # pieces without length that start and end here stand behind
        late = (place >= 0) & (by_end[np.maximum(place, 0)] >= rows)
        if not late.any():
            break
        place[late] -= 1
    return np.where(place >= 0, by_end[np.maximum(place, 0)], NULL)


def _latest_elsewhere(waiting: I64, stream: I64, start: I64, end: I64, asked: I64) -> I64:
    """For each waiting piece the one of another stream that ended last before it started, and was
    launched before it.
    """
    by_end = np.lexsort((np.arange(len(end)), end))
    place = np.searchsorted(end[by_end], start[waiting], "right") - 1
    for _ in range(_MOST_STEPS):
        found = by_end[np.maximum(place, 0)]
        wrong = (place >= 0) & (
            (stream[found] == stream[waiting])
            | (found >= waiting)
            | (asked[found] > asked[waiting])
        )
        if not wrong.any():
            break
        place[wrong] -= 1
    else:
        place[wrong] = NULL
    return np.where(place >= 0, by_end[np.maximum(place, 0)], NULL)


def _behind_wait(scope: Scope, call: I64) -> Mask:
    """Which pieces are the first of a launch behind an event wait of its thread, without another
    launch in between.
    """
    api = scope.records.api
    behind = np.zeros(len(call), np.bool_)
    waits = np.flatnonzero(patterns.matching(scope.trace.strings, api, patterns.EVENT_WAIT))
    launches, first = np.unique(call, return_index=True)
    launches, first = launches[launches != NULL], first[launches != NULL]
    if not len(waits) or not len(launches):
        return behind
    both = np.concatenate((waits, launches))
    thread = pack([api.source, api.pid, api.tid])[both]
    order = np.lexsort((api.start_ns[both], thread))
    is_wait = order < len(waits)
    after = is_wait[:-1] & ~is_wait[1:] & (thread[order[1:]] == thread[order[:-1]])
    behind[first[order[1:][after] - len(waits)]] = True
    return behind
