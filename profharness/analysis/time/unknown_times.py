"""When work may have run whose times are not known: kernels whose recorded length cannot be true,
and records without times. Contributors to `not_recorded`.

A stream runs its work in order. So a kernel of unknown length has ended when the next work of its
stream begins, and a record without times lies between its neighbours in order of launch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.time.believed import overlong
from profharness.analysis.time.device_work import Work
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]


def of_unknown_length(trace: Trace, work: Work, device: int) -> Intervals:
    """From the start of each overlong kernel to the next start on its stream."""
    lengths = overlong(trace)
    if lengths is None:
        return intervals.EMPTY
    rows = np.flatnonzero(lengths & (trace.kernels.device == device))
    until = work.start[rows]
    of_stream = _by_stream(work.stream, np.arange(len(work.start)))
    for stream, mine in _by_stream(work.stream[rows], np.arange(len(rows))).items():
        starts = np.sort(work.start[of_stream[stream]])
        following = np.searchsorted(starts, until[mine], "right")
        until[mine] = starts[np.minimum(following, len(starts) - 1)]
    return Intervals(work.start[rows], until)


def _by_stream(stream: npt.NDArray[np.int32], rows: I64) -> dict[int, I64]:
    """Those rows of each stream, in their order."""
    ordered = rows[np.argsort(stream[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(stream[ordered])) + 1
    groups = np.split(ordered, ends) if len(rows) else []
    return {int(stream[group[0]]): group for group in groups}


def of_unknown_place(trace: Trace, work: Work, device: int) -> Intervals:
    """For each record without times from its launch, or the end of what was launched before it on
    its stream, to the start of what was launched after it; the time of all work of the device where
    neither says anything.
    """
    here = work.device == device
    lost = here & (work.start == NULL)
    known = here & (work.start != NULL)
    if not lost.any() or not known.any():
        return intervals.EMPTY
    first, last = int(work.start[known].min()), int(work.end[known].max())
    found = []
    launched, placed = _order_of_launch(trace, work)
    beside = _by_stream(work.stream, np.flatnonzero(known & placed & (work.stream != NULL)))
    none = np.empty(0, np.int64)
    for stream, mine in _by_stream(work.stream, np.flatnonzero(lost)).items():
        low, high = np.full(len(mine), first), np.full(len(mine), last)
        others = beside.get(stream, none)
        others = others[np.argsort(launched[others], kind="stable")]
        at = np.searchsorted(launched[others], launched[mine])
        ended = np.maximum.accumulate(work.end[others])
        begun = np.minimum.accumulate(work.start[others][::-1])[::-1]
        before, behind = placed[mine] & (at > 0), placed[mine] & (at < len(others))
        low[before] = ended[at[before] - 1]
        high[behind] = begun[at[behind]]
        low = np.maximum(low, _called(work, mine))
        found.append(Intervals(low, np.maximum(low, high)))
    return Intervals(
        np.concatenate([one.start for one in found]), np.concatenate([one.end for one in found])
    )


def _order_of_launch(trace: Trace, work: Work) -> tuple[I64, npt.NDArray[np.bool_]]:
    """Numbers that rise as work was launched, and whether each is known: starts of launching calls,
    else numbers of dispatches, else ids.
    """
    call = work.call
    if (call != NULL).any():
        return np.where(call == NULL, work.start, _called(work, np.arange(len(call)))), (
            (call != NULL) | (work.start != NULL)
        )
    kernels, copies = trace.kernels, trace.copies
    for of_kernels in (kernels.dispatch, kernels.correlation):
        number = np.concatenate((of_kernels, np.full(len(copies), NULL)))
        if (number != NULL).any():
            return number, number != NULL
    return work.start, work.start != NULL


def _called(work: Work, rows: I64) -> I64:
    """When the call that launched each of these began; the least number where it is not known."""
    call = work.call[rows]
    unknown = np.iinfo(np.int64).min
    if not len(work.api):
        return np.full(len(rows), unknown)
    return np.where(call == NULL, unknown, work.api.start_ns[np.maximum(call, 0)])
