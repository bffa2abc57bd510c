"""Host calls that wait for the device, and the piece of work that each waited for.

The runtime's names say that a call waits, not for what. It is taken to be the piece that ended last
before the call returned, of those that were launched before the call began; a copy to or from
pageable memory waits for its own record, if that ended inside of the call. A launch waits for room
where the queue is full. A call that returns long after the last end waited for something that is
not in the file, and waits for nothing here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.arrivals import Arrivals
from profharness.analysis.critical.scope import Scope
from profharness.analysis.kernels import patterns
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LONGEST_RETURN_NS = 100_000
"""How long after the end of the awaited work a call may return."""
LONG_COPY_NS = 100_000
"""A copy call that takes longer than this waited, for its own record or for work before it."""
FULL_QUEUE = 900
"""Pieces in a queue that make it full: CUDA holds about 1 022 (seen on a V100) and then blocks."""
_BLOCKING_COPY = re.compile(r"^(cuda|hip)Memcpy(?!.*Async)|MemcpyWithStream|^cuMemcpy(?!.*Async)")
_MOST_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Waits:
    """Calls that ended in the window: rows in the table of calls, their times in the window, and
    the position in `Scope.work` of what they waited for (NULL where nothing is known). The work
    may have ended before the call began: then the call had nothing to wait for.
    """

    call: I64
    start: I64
    end: I64
    work: I64
    for_room: Mask
    """Launches that waited for room in the queue."""

    def at(self, mask: Mask) -> Waits:
        """Those where the mask holds."""
        return Waits(
            self.call[mask],
            self.start[mask],
            self.end[mask],
            self.work[mask],
            self.for_room[mask],
        )


def waits(scope: Scope, arrived: Arrivals) -> Waits:
    """The calls of the process that end in the window and wait for the device."""
    api = scope.records.api
    end = api.start_ns + api.dur_ns
    inside = (api.dur_ns > 0) & (end > scope.start) & (end <= scope.end)
    names = scope.trace.strings
    copying = patterns.matching(names, api, patterns.COPY_CALL) & (api.dur_ns > LONG_COPY_NS)
    waiting = inside & (patterns.matching(names, api, patterns.SYNCHRONISE) | copying)
    own = _own_copies(scope, arrived, inside)
    full = _at_full_queue(scope, arrived, inside)
    of_last = np.flatnonzero((waiting | full) & (own == NULL))
    of_own = np.flatnonzero(own != NULL)
    call = np.concatenate((of_last, of_own))
    work = np.concatenate((_last_launched_before(scope, arrived, of_last), own[of_own]))
    room = np.concatenate((full[of_last], np.zeros(len(of_own), np.bool_)))
    return Waits(call, np.maximum(api.start_ns[call], scope.start), end[call], work, room)


def _at_full_queue(scope: Scope, arrived: Arrivals, inside: Mask) -> Mask:
    """Which launching calls returned while as many pieces as a queue holds were launched before
    them and had not ended.
    """
    api = scope.records.api
    full = np.zeros(len(api), np.bool_)
    known = arrived.launched != NULL
    launched, ended = np.sort(arrived.launched[known]), np.sort(arrived.end[known])
    if len(launched) < FULL_QUEUE:
        return full
    calls = np.unique(arrived.call[known])
    before = np.searchsorted(launched, api.start_ns[calls], "left")
    done = np.searchsorted(ended, (api.start_ns + api.dur_ns)[calls], "right")
    full[calls] = before - done >= FULL_QUEUE
    filled: Mask = full & inside
    return filled


def _last_launched_before(scope: Scope, arrived: Arrivals, calls: I64) -> I64:
    """For each call the piece that ended last before its return, of those launched before it."""
    api = scope.records.api
    start, end = api.start_ns[calls], (api.start_ns + api.dur_ns)[calls]
    if not len(arrived.end):
        return np.full(len(calls), NULL, np.int64)
    by_end = np.lexsort((np.arange(len(arrived.end)), arrived.end))
    # work without a launch in the file was launched before it began
    asked = np.where(arrived.launched == NULL, scope.start - 1, arrived.launched)
    place = np.searchsorted(arrived.end[by_end], end, "left") - 1
    start = np.maximum(start, scope.start)
    for _ in range(_MOST_STEPS):
        wrong = (place >= 0) & (asked[by_end[np.maximum(place, 0)]] >= start)
        if not wrong.any():
            break
        place[wrong] -= 1
    else:
        place[wrong] = NULL
    work = np.where(place >= 0, by_end[np.maximum(place, 0)], NULL)
    ended = arrived.end[np.maximum(work, 0)]
    unexplained = (ended > start) & (end - ended > LONGEST_RETURN_NS)
    return np.where(unexplained, NULL, work)


def _own_copies(scope: Scope, arrived: Arrivals, inside: Mask) -> I64:
    """For each call the copy that it made and waited for; NULL for all other calls."""
    api, trace = scope.records.api, scope.trace
    own = np.full(len(api), NULL, np.int64)
    copies = np.flatnonzero((scope.work >= scope.records.kernels) & (arrived.call != NULL))
    if not len(copies):
        return own
    call = arrived.call[copies]
    pageable = np.array(
        [
            "Pageable" in name
            for name in trace.strings.decode(
                trace.copies.name[scope.work[copies] - scope.records.kernels]
            )
        ],
        np.bool_,
    )
    blocking = pageable | patterns.matching(trace.strings, api, _BLOCKING_COPY)[call]
    returned = (api.start_ns + api.dur_ns)[call]
    waited = blocking & inside[call] & (arrived.end[copies] < returned)
    own[call[waited]] = copies[waited]
    return own
