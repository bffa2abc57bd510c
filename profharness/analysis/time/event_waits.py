"""Launches behind a wait for an event or a value, or behind a function of the host: their work
begins once that comes or ends, whatever the device does meanwhile.
"""

from __future__ import annotations

from re import Pattern

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.time.device_work import Work
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

Mask = npt.NDArray[np.bool_]


def behind_event_wait(trace: Trace, work: Work) -> Mask:
    """Which host calls come after an event wait of their thread with no linked call in between.
    Kept, and not to be written to.
    """
    return _kept(trace, work, patterns.EVENT_WAIT)


def behind_host_function(trace: Trace, work: Work) -> Mask:
    """Which host calls come after their thread put a function of the host into a stream, with no
    linked call in between. Kept, and not to be written to.
    """
    return _kept(trace, work, patterns.HOST_FUNCTION)


def _kept(trace: Trace, work: Work, pattern: Pattern[str]) -> Mask:
    return trace.api.kept(
        (behind_event_wait, pattern),
        (trace.kernels, trace.copies, trace.strings),
        lambda: _behind(trace, work, pattern),
    )


def _behind(trace: Trace, work: Work, pattern: Pattern[str]) -> Mask:
    api = trace.api
    behind = np.zeros(len(api), np.bool_)
    waits = patterns.matching(trace.strings, api, pattern)
    if waits.any():
        launching = np.zeros(len(api), np.bool_)
        launching[work.call[work.call != NULL]] = True
        relevant = np.flatnonzero(waits | launching)
        thread = work.thread_of_call
        ordered = relevant[np.lexsort((api.start_ns[relevant], thread[relevant]))]
        after_wait = np.zeros(len(ordered), np.bool_)
        same_thread = thread[ordered[1:]] == thread[ordered[:-1]]
        after_wait[1:] = waits[ordered[:-1]] & same_thread
        behind[ordered] = after_wait
    behind.flags.writeable = False
    return behind
