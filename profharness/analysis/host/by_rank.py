"""What the host of each rank was in over the window of its job's steps, rank by rank."""

from __future__ import annotations

from profharness.analysis.host.records import HostTime
from profharness.analysis.host.step_threads import step_threads
from profharness.analysis.host.tally import HostTally
from profharness.analysis.host.timeline import OPS, HostRows, host_rows
from profharness.analysis.time.windows import Windows
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def hosts_by_rank(trace: Trace, when: Windows) -> dict[int, HostTime]:
    """The account of the thread that runs the steps of each rank, over the whole window, by the
    rank's number. A rank without operators in the window, and processes without a rank, are not
    there.
    """
    rows = host_rows(trace)
    threads = step_threads(trace, rows, when.when) if when.when.total else []
    found: dict[int, HostTime] = {}
    for thread in threads:
        rank = _rank(trace, rows, thread)
        if rank == NULL or rank in found:
            continue
        tally = HostTally()
        tally.turn_to(trace)
        tally.add_window(when.when, thread)
        found[rank] = HostTime(
            of="window",
            window_ns=when.when.total,
            total_ns=when.when.total,
            steps=round(when.steps / len(threads)),
            parts=tally.parts(when.when.total),
        )
    return found


def _rank(trace: Trace, rows: HostRows, thread: int) -> int:
    """The rank of a thread that has operators: its source's, else as its operators say."""
    first = int(rows.row[(rows.thread == thread) & (rows.table == OPS)][0])
    stated = trace.sources[int(trace.ops.source[first])].rank
    return int(trace.ops.rank[first]) if stated is None else stated
