"""What the host was in, summed over a window: parts by cause, kind and name that sum to it exactly
(docs/metrics.md#what-the-host-did).
"""

from __future__ import annotations

from profharness.analysis.host.after_waits import Opened, opened_by_waits
from profharness.analysis.host.records import AfterWait, HostTime
from profharness.analysis.host.step_threads import step_threads
from profharness.analysis.host.tally import KEPT, HostTally
from profharness.analysis.host.timeline import host_rows
from profharness.analysis.time.idle import IdleAnalysis, Stretches
from profharness.analysis.time.idle_spans import host_sets
from profharness.analysis.time.steps import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import Trace


def of_idle(trace: Trace, idle: IdleAnalysis, devices: tuple[int, ...], when: Windows) -> HostTime:
    """What the host did while each of the devices was idle. Causes sum as in the partition."""
    tally, opened = HostTally(trace, host_rows(trace)), Opened()
    for device in devices if len(when.when) else ():
        gaps = idle.gaps(device, int(when.when.start[0]), int(when.when.end[-1]))
        stretches = idle.stretches(device, gaps)
        opened_by_waits(tally, idle, gaps, when.when, opened)
        elsewhere = intervals.intersect(idle.remote_copies(device), when.when)
        _after_launch(tally, idle, stretches, elsewhere, when.when)
        for host, stretch in stretches.before:
            within = intervals.intersect(intervals.merge(stretch), when.when)
            for cause, held in host_sets(host, within).items():
                tally.add(cause.removesuffix("_ns"), held, tally.thread(host))
    window_ns = when.when.total * len(devices)
    return HostTime(
        of="idle",
        window_ns=window_ns,
        total_ns=tally.total_ns,
        steps=when.steps,
        parts=tally.parts(window_ns),
        after_waits=tuple(
            AfterWait(name=name, gaps=count, ns=ns, share=ns / window_ns)
            for name, (ns, count) in sorted(opened.items(), key=lambda item: (-item[1][0], item[0]))
        )[:KEPT],
    )


def of_window(trace: Trace, when: Windows) -> HostTime | None:
    """What the thread that runs the steps was in over the window, for each process that recorded
    operators in it; None without any.
    """
    rows = host_rows(trace)
    tally, threads = HostTally(trace, rows), step_threads(trace, rows, when.when)
    for thread in threads:
        tally.add_window(when.when, thread)
    window_ns = when.when.total * len(threads)
    if not window_ns:
        return None
    return HostTime(
        of="window",
        window_ns=window_ns,
        total_ns=window_ns,
        steps=when.steps,
        processes=len(threads),
        parts=tally.parts(window_ns),
    )


def _after_launch(
    tally: HostTally,
    idle: IdleAnalysis,
    stretches: Stretches,
    elsewhere: Intervals,
    windows: Intervals,
) -> None:
    """Idle time that the host did not cause: its launching calls had begun. Where the host may
    have, since a stream can wait for what it did next, its time is split too. `elsewhere` are the
    copies of other engines.
    """

    def inside(stretch: Intervals) -> Intervals:
        return intervals.intersect(intervals.merge(stretch), windows)

    tally.add_device("no_host_record", inside(stretches.unlinked).total)
    behind, queued = stretches.behind_wait, inside(stretches.queued)
    for host, own in idle.by_thread(stretches.behind_by):
        held = inside(Intervals(behind.start[own], behind.end[own]))
        tally.add("waiting_copy_or_event", held, tally.thread(host))
    waiting = intervals.intersect(queued, elsewhere).total
    tally.add_device("waiting_copy_or_event", waiting)
    tally.add_device("queued_gap", queued.total - waiting)
    launching = stretches.launching
    for host, own in idle.by_thread(stretches.launched_by):
        within = inside(Intervals(launching.start[own], launching.end[own]))
        moved = intervals.intersect(within, elsewhere)
        tally.add_device("waiting_copy_or_event", moved.total)
        tally.add("launch_in_progress", intervals.subtract(within, moved), tally.thread(host))
