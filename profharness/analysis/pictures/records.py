"""What pictures of the report draw, as typed records. Nothing is computed here."""

from __future__ import annotations

import msgspec

KINDS = (
    "compute_ns",
    "exposed_communication_ns",
    "exposed_copy_ns",
    "no_host_record_ns",
    "waiting_copy_or_event_ns",
    "queued_gap_ns",
    "launch_in_progress_ns",
    "synchronisation_ns",
    "host_not_ready_ns",
    "idle_or_not_recorded_ns",
)
"""What each instant of a device was: fields of `Partition` and of its `idle_causes`."""


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The window of one device over time, in pieces. `start_ns` to `end_ns` is from the first to
    the last instant of the window, `window_ns` what of it belongs to the window.

    Of each piece, by column: the place of its kind in KINDS, its start after `start_ns`, its width,
    and `ns` of that width which are of the kind. Where `thinned`, a piece stands for a bin of time:
    `before` is the ns of the bin that pieces of other kinds hold, below this one in the picture.
    The sums of `ns` over the pieces of a kind are those of the partition.
    """

    device: str
    start_ns: int
    end_ns: int
    window_ns: int
    thinned: bool
    kind: tuple[int, ...]
    at: tuple[int, ...]
    width: tuple[int, ...]
    before: tuple[int, ...]
    ns: tuple[int, ...]

    def totals(self) -> dict[str, int]:
        """The ns of each kind that occurs."""
        sums: dict[str, int] = {}
        for kind, ns in zip(self.kind, self.ns, strict=True):
            sums[KINDS[kind]] = sums.get(KINDS[kind], 0) + ns
        return sums


class Strips(msgspec.Struct, frozen=True, kw_only=True):
    """Strips of devices, and how many devices more there are (`of_files` chooses). With
    `own_clocks` the strips are of several files, each on its own clock, which begins with its
    window.
    """

    strips: tuple[Strip, ...] = ()
    left_out: int = 0
    own_clocks: bool = False


class Flame(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of time, laid out: each frame lies inside of the one that holds it, side by side with
    the others that it holds, the longest first.

    Of each frame, by column: the place of its name in `names`, that of its kind in `kinds`, its
    depth (0 outermost), where it begins and how long it is, in ns. `least_ns`: shorter frames
    stand together as the frame "others" of what holds them, so that all sums stay.
    """

    by: str
    of_device: bool
    total_ns: int
    least_ns: int
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    name: tuple[int, ...]
    kind: tuple[int, ...]
    depth: tuple[int, ...]
    at: tuple[int, ...]
    length: tuple[int, ...]


class RankShare(msgspec.Struct, frozen=True, kw_only=True):
    """How the window of one device divides, in ns: parts of `Partition`. `rank` is None where
    nobody says which rank ran on it.
    """

    device: str
    rank: int | None
    window_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int
    idle_or_not_recorded_ns: int = 0


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """When a pass ran, or a point was measured in one, in seconds after the first sample of
    telemetry. `point` is empty for a whole pass.
    """

    pass_name: str
    point: str = ""
    start_s: float
    end_s: float


class Pictures(msgspec.Struct, frozen=True, kw_only=True):
    """All that the report's pictures need beside the figures of a summary, and where to look first
    in the trace: the number of the longest step, and the start and end (ns) of the measured window,
    of a scan that of the recommended point.
    """

    strips: Strips = Strips()
    flames: tuple[Flame, ...] = ()
    ranks: tuple[RankShare, ...] = ()
    bands: tuple[Band, ...] = ()
    longest_step: int | None = None
    window: tuple[int, int] | None = None
