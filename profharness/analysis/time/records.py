"""How the time of a window divides, as typed records (docs/metrics.md#partition)."""

from __future__ import annotations

import msgspec

from profharness.analysis.verdict.records import KernelParts
from profharness.units import format_share


class IdleCauses(msgspec.Struct, frozen=True, kw_only=True):
    """Idle time by cause, disjoint, in ns (docs/metrics.md#idle-causes). `micro_ns` is the part in
    gaps under 10 µs, `macro_ns` the rest.
    """

    no_host_record_ns: int = 0
    waiting_copy_or_event_ns: int = 0
    queued_gap_ns: int = 0
    launch_in_progress_ns: int = 0
    synchronisation_ns: int = 0
    host_not_ready_ns: int = 0
    micro_ns: int = 0
    macro_ns: int = 0


SEEN_SHARE = 0.0005
"""Less than this share of a window shows in no figure, as shares are told to a tenth of a per
cent.
"""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """Disjoint parts of one window that sum to `window_ns` exactly; overlaps are "of which"
    figures. `kernel_parts` divides `compute_ns`, `idle_causes` divides `idle_ns`. In
    `idle_or_not_recorded_ns` nothing is recorded, and the device may have run something;
    `open_recurs` says that most of it comes again in the steps, at the same work of one of several
    streams, so that it may be how the work is queued.
    """

    window_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int
    idle_or_not_recorded_ns: int = 0
    communication_ns: int = 0
    copy_ns: int = 0
    idle_causes: IdleCauses | None = None
    kernel_parts: KernelParts | None = None
    open_recurs: bool = False

    @property
    def open_ns(self) -> int:
        """By how much busy and idle time are not known: what is idle or not recorded, 0 where that
        would not be seen in a share of the window.
        """
        unknown = self.idle_or_not_recorded_ns
        return unknown if unknown >= SEEN_SHARE * self.window_ns else 0

    @property
    def why_open(self) -> str:
        """Why shares are ranges, as a clause; empty where they are not."""
        if not self.open_ns:
            return ""
        share = format_share(self.open_ns / self.window_ns)
        return f"{share} of the time is {'queued' if self.open_recurs else 'idle'} or not recorded"
