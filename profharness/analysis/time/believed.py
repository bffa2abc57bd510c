"""Kernels whose recorded length cannot be true, and a trace without these lengths
(docs/metrics.md#not-believed).

A stream runs its work in order: a kernel that goes on after a later one of its stream, launched by
another call, has ended was recorded with a wrong end. Kernels of one graph may lie in branches, and
on AMD the end of a kernel overlaps the start of the next by a fraction of a microsecond.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.time.linking import link_kernels
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_IDS_OF_A_PROCESS = 40  # bits
SMALL_OVERLAP_NS = 2_000
"""Up to so much past the start of the next kernel is ordinary, even where that one is as short:
MI300X shows up to 0.6 µs, and older tools round to whole microseconds.
"""


def overlong(trace: Trace) -> Mask | None:
    """For each kernel whether it holds whole successors of its own stream; None where none does.
    The kernels of `believed` answer as those that they were made of.
    """
    others = (trace.api, trace.sources, trace.strings)
    return trace.kernels.kept(overlong, others, lambda: _overlong(trace))


def believed(trace: Trace) -> Trace:
    """The trace in which overlong kernels have no length, for windows, shares and the verdict; the
    trace itself where none has one. Rows stay as they are.
    """
    lengths = overlong(trace)
    if lengths is None or not trace.kernels.dur_ns[lengths].any():
        return trace
    others = (trace.api, trace.sources, trace.strings)

    def shortened() -> Trace:
        kernels = trace.kernels.with_columns(dur_ns=np.where(lengths, 0, trace.kernels.dur_ns))
        kernels.kept(overlong, others, lambda: lengths)
        return replace(trace, kernels=kernels)

    # one table, since much is kept with it
    made = trace.kernels.kept(believed, others, shortened)
    return replace(trace, kernels=made.kernels)


def _overlong(trace: Trace) -> Mask | None:
    """Neighbours in order of their starts tell whether there is anything to look for: where ends
    rise as starts do, no kernel holds another one.
    """
    kernels = trace.kernels
    streams = _streams(trace)
    order = _by_stream(streams, kernels.start_ns)
    stream, start = streams[order], kernels.start_ns[order]
    end = start + kernels.dur_ns[order]
    held = (end[1:] <= end[:-1]) & (stream[1:] == stream[:-1]) & (stream[1:] != NULL)
    held &= (start[:-1] != NULL) & (end[:-1] - start[1:] > SMALL_OVERLAP_NS)
    if not held.any():
        return None
    call = link_kernels(trace).api
    # a kernel of a source without calls tells by its id what launched it
    owner = np.where(call != NULL, call, -2 - kernels.correlation)[order]
    known = (call[order] != NULL) | (kernels.correlation[order] != NULL)
    found = np.zeros(len(order), np.bool_)
    wanted = np.unique(stream[1:][held])
    first, last = (np.searchsorted(stream, wanted, side) for side in ("left", "right"))
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        rows = low + np.flatnonzero((start[low:high] != NULL) & known[low:high])
        found[order[rows]] = _holders(start[rows], end[rows], owner[rows])
    return found if found.any() else None


def _streams(trace: Trace) -> npt.NDArray[np.integer[Any]]:
    """The stream of each kernel. A CSV of several processes names them all by the same numbers, and
    their ids lie far apart.
    """
    stream = trace.kernels.stream
    process = np.maximum(trace.kernels.correlation, 0) >> _IDS_OF_A_PROCESS
    return np.where(stream == NULL, NULL, pack([stream, process])) if process.any() else stream


def _by_stream(stream: npt.NDArray[np.integer[Any]], start: I64) -> I64:
    """The kernels by stream, each by start. Files hold them in nearly this order."""
    by_start = np.argsort(start, kind="stable")
    order: I64 = by_start[np.argsort(stream[by_start], kind="stable")]
    return order


def _holders(start: I64, end: I64, owner: I64) -> Mask:
    """Which kernels of one stream, in order of their starts, hold a whole one of another launch
    that began early enough.
    """
    holds = np.zeros(len(start), np.bool_)
    launches = np.append(np.flatnonzero(owner[1:] != owner[:-1]) + 1, len(start))
    following = launches[np.searchsorted(launches, np.arange(len(start)), "right")]
    until = np.searchsorted(start, end - SMALL_OVERLAP_NS)
    rows = np.flatnonzero(following < until)
    if not len(rows):
        return holds
    first = _first_to_end(end, following[rows], until[rows])
    held, own = end[first] <= end[rows], owner[first] == owner[rows]
    holds[rows] = held & ~own
    for row in rows[held & own].tolist():  # launches that lie among one another
        among = slice(following[row], until[row])
        holds[row] = ((end[among] <= end[row]) & (owner[among] != owner[row])).any()
    return holds


def _first_to_end(end: I64, low: I64, high: I64) -> I64:
    """For each range of rows, which are not empty, which row of it ends first: the earlier one of
    the two ranges of a power of two that cover it.
    """
    found = np.empty(len(low), np.int64)
    power = np.log2(high - low).astype(np.int64)
    best, width = np.arange(len(end)), 1  # of as many rows as `width` from each row on
    for level in range(int(power.max()) + 1):
        asked = power == level
        found[asked] = _earlier(end, best[low[asked]], best[high[asked] - width])
        best = _earlier(end, best[:-width], best[width:])
        width *= 2
    return found


def _earlier(end: I64, one: I64, other: I64) -> I64:
    return np.where(end[one] <= end[other], one, other)
