"""When a device was idle, by cause: the instants that `IdleAnalysis.causes` measures
(docs/metrics.md#idle-causes).
"""

from __future__ import annotations

from profharness.analysis.time.idle import HostThread, IdleAnalysis
from profharness.analysis.time.not_recorded import remote_copies
from profharness.stats import intervals
from profharness.stats.intervals import Intervals

NOT_RECORDED = "idle_or_not_recorded_ns"


def idle_spans(idle: IdleAnalysis, device: int, windows: Intervals) -> dict[str, Intervals]:
    """The idle time of a device in a merged set of windows as one merged set per cause, by the
    field of `IdleCauses` that holds its measure, and what may have been unrecorded work by that of
    `Partition`. They are disjoint.
    """
    if not len(windows):
        return {}
    gaps = idle.gaps(device, int(windows.start[0]), int(windows.end[-1]))
    stretches = idle.stretches(device, gaps)
    elsewhere = remote_copies(idle.trace, device)
    queued, launching = intervals.merge(stretches.queued), intervals.merge(stretches.launching)
    sets: dict[str, list[Intervals]] = {
        "no_host_record_ns": [stretches.unlinked],
        "waiting_copy_or_event_ns": [
            stretches.behind_wait,
            intervals.intersect(queued, elsewhere),
            intervals.intersect(launching, elsewhere),
        ],
        "queued_gap_ns": [intervals.subtract(queued, elsewhere)],
        "launch_in_progress_ns": [intervals.subtract(launching, elsewhere)],
        "synchronisation_ns": [],
        "host_not_ready_ns": [],
    }
    for host, stretch in stretches.before:
        for name, held in host_sets(host, intervals.merge(stretch)).items():
            sets[name].append(held)
    known = idle.known(device, windows)
    return {
        **{
            name: intervals.intersect(intervals.union(*parts), known)
            for name, parts in sets.items()
        },
        NOT_RECORDED: intervals.intersect(idle.not_recorded(device), windows),
    }


def host_sets(host: HostThread, stretch: Intervals) -> dict[str, Intervals]:
    """A merged set of stretches divided by what the host did."""
    blocked = intervals.subtract(host.blocked, host.copying)
    recorded = intervals.intersect(stretch, host.recorded)
    return {
        "no_host_record_ns": intervals.subtract(stretch, host.recorded),
        "waiting_copy_or_event_ns": intervals.intersect(stretch, host.copying),
        "synchronisation_ns": intervals.intersect(stretch, blocked),
        "host_not_ready_ns": intervals.subtract(recorded, host.blocked),
    }
