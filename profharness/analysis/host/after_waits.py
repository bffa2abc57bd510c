"""Idle time of a device by the waiting call of the host that it follows.

A call that waits for the device is itself hardly ever in a gap: it returns when the device has run
dry, and the gap is what the host does next. So the gap is told by what opened it, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.tally import HostTally
from profharness.analysis.time.idle import Gaps, IdleAnalysis
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Opened = dict[str, tuple[int, int]]
"""Idle ns and gaps by the name of the waiting call that opened them."""


def opened_by_waits(
    tally: HostTally, idle: IdleAnalysis, gaps: Gaps, windows: Intervals, opened: Opened
) -> None:
    """Adds the gaps that began while the thread which ended them was in a waiting call, and in
    which that call returned: it had waited for the device's last work.
    """
    if not len(idle.work.call) or not len(gaps.next):
        return
    rows, call = tally.rows, idle.work.call[np.maximum(gaps.next, 0)]
    linked = np.flatnonzero((gaps.next != NULL) & (call != NULL))
    inside = intervals.inside_ns(gaps.intervals(), windows)
    for host, own in idle.by_thread(call[linked]):
        mine = linked[own]
        mine = mine[inside[mine] > 0]
        thread = tally.thread(host)
        if thread == NULL or not len(mine):
            continue
        at, holder = _following(tally, thread, gaps, mine)
        for name in distinct(rows.name[holder]):
            of_name = at[rows.name[holder] == name]
            text = tally.trace.strings[int(name)]
            ns, count = opened.get(text, (0, 0))
            opened[text] = ns + int(inside[of_name].sum()), count + len(of_name)


def _following(tally: HostTally, thread: int, gaps: Gaps, mine: I64) -> tuple[I64, I64]:
    """Of the gaps those that a waiting call opened, and the row of the call."""
    rows = tally.rows
    line = tally.line(thread)
    waits = (line.kind == Kind.SYNCHRONISATION) | (line.kind == Kind.COPY_CALL)
    holder = np.unique(line.holder[waits])
    # a fill hands its work over and returns: it waits for nothing
    fills = [tally.trace.strings[int(code)].find("Memset") >= 0 for code in rows.name[holder]]
    holder = holder[~np.array(fills, np.bool_)]
    if not len(holder):
        return mine[:0], holder
    holder = holder[np.argsort(rows.end[holder], kind="stable")]
    ends = rows.end[holder]
    first = np.searchsorted(ends, gaps.start[mine], side="left")
    found = np.minimum(first, len(ends) - 1)
    follows = (first < len(ends)) & (ends[found] <= gaps.end[mine])
    follows &= rows.start[holder[found]] <= gaps.start[mine]
    return mine[follows], holder[found[follows]]
