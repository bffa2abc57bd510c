"""Launch-bound time: the device is idle or draining its last kernel while the host is in, or
between, launches.

Idle counts only while no further work is queued: a device that pauses before work whose launch has
returned is not held back by launching. The host counts as launching from one kernel launch to the
next of the same thread while no more than `BETWEEN_LAUNCHES_NS` lie between them, outside
synchronisation and copy calls: a longer pause is the workload's own (loading data, reading a file)
and shows as `host not ready`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.time.device_work import Work
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
BETWEEN_LAUNCHES_NS = 1_000_000


def launch_bound_ns(work: Work, device: int, windows: Intervals, launching: Intervals) -> int:
    """Launch-bound time of a device in a merged set of windows, in ns; `launching` is what
    `host_launching` says of it.
    """
    in_windows = (
        (work.device == device)
        & (work.end > work.start)
        & intervals.reaching(Intervals(work.ready, work.end), windows)
    )
    fed = intervals.overlapping(Intervals(work.ready[in_windows], work.end[in_windows]))
    starved = intervals.subtract(windows, fed)
    return intervals.intersect(starved, launching).total


def host_launching(trace: Trace, work: Work, device: int) -> Intervals:
    """When some thread that launches on the device was in, or between, launches."""
    api = trace.api
    kernel_calls = work.call[: work.kernels]
    calls = distinct(kernel_calls[(work.device[: work.kernels] == device) & (kernel_calls != NULL)])
    if not len(calls):
        return intervals.EMPTY
    thread = pack([api.source, api.pid, api.tid])
    launches = patterns.matching(trace.strings, api, patterns.LAUNCH).copy()
    launches[calls] = True
    other = patterns.matching(trace.strings, api, patterns.SYNCHRONISE) | patterns.matching(
        trace.strings, api, patterns.COPY_CALL
    )
    return intervals.union(
        *[
            _of_thread(trace, launches & (thread == number), other & (thread == number))
            for number in distinct(thread[calls])
        ]
    )


def _of_thread(
    trace: Trace, launches: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]
) -> Intervals:
    api = trace.api
    rows = np.flatnonzero(launches)
    rows = rows[np.argsort(api.start_ns[rows], kind="stable")]
    start = api.start_ns[rows]
    end = np.maximum.accumulate(start + api.dur_ns[rows])
    following = np.append(start[1:], end[-1])
    close = following - end <= BETWEEN_LAUNCHES_NS
    active = intervals.merge(Intervals(start, np.where(close, np.maximum(following, end), end)))
    waiting = intervals.merge(intervals.lasting(api.start_ns[other], api.dur_ns[other]))
    return intervals.subtract(active, waiting)
