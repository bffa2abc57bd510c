"""What the analysis says of collectives and copies between devices, as typed records. Nothing is
computed here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.host.records import HostPart


class CommunicationTime(msgspec.Struct, frozen=True, kw_only=True):
    """One device in the window, in ns: when a collective ran, of which exposed (no other kernel
    ran) and overlapped by one.

    `peer_copies` are copies from device to device, with the union of their time; bytes are None
    where one is not known. A rank whose collectives ran on the CPU has a row of its own
    (`on_host`): exposed is where none of its operators ran.
    """

    device: str
    rank: int | None = None
    window_ns: int
    total_ns: int
    exposed_ns: int
    overlapped_ns: int
    peer_copies: int = 0
    peer_copy_ns: int = 0
    peer_copy_bytes: int | None = None
    on_host: bool = False


class CollectiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one collective with one size, over all ranks. Times are of kernels (ranges on the
    CPU), waiting for late ranks included.

    `bytes` is the size of the collective as nccl-tests states it, `transfer_ns` the median over
    calls of the shortest kernel among the ranks seen (the last one to arrive waits for nobody);
    bandwidths, in B/s, are over that time, and at least that high where only one rank was seen
    (`ranks`). None where sizes or the group are not recorded.
    """

    kind: str
    dtype: str = ""
    group_size: int | None = None
    bytes: int | None = None
    ranks: int
    calls: int
    total_ns: int
    mean_ns: float
    transfer_ns: float
    algorithm_bandwidth: float | None = None
    bus_bandwidth: float | None = None


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank over the matched calls: how often it came last by more than the clocks can hide, how
    long it waited for others.

    `last_costly` is how often it came last in the calls that make up most of the waiting (80 %).
    `late_ns` is how long after the last of the others it arrives on average (negative: before it),
    `late_low_ns` what that is at least, beyond chance; None of too few calls. `late_in_quarters`:
    each quarter of its calls has at least a quarter of it.

    `clock_calls` put its clock on that of the others (0 where that is the common one),
    `clock_scatter_ns` and `clock_bound_ns` are as in `Skew`, of this rank.
    """

    rank: str
    calls: int
    last: int
    wait_ns: int
    mean_behind_ns: float
    last_costly: int = 0
    late_ns: float | None = None
    late_low_ns: float | None = None
    late_in_quarters: bool = False
    clock_calls: int = 0
    clock_scatter_ns: int = 0
    clock_bound_ns: int | None = 0


class Skew(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of arrival at the same collective: the last rank's kernel start less the first
    one's, in ns, over matched calls.

    `noticeable` calls have a difference that counts, `costly` ones make up most (80 %) of all
    waiting; `aligned` says how the ranks' clocks were put together: the ends of nineteen of twenty
    calls lie within `clock_scatter_ns` on that clock, and no two clocks are wrong by more than
    `clock_bound_ns` (both 0 on a run's clock; None where no call bounds them). A rank waits in a
    call until the one comes that it waits for (`waits.awaited`), and no longer than the call lasts.
    """

    ranks: int
    matched: int
    unmatched: int
    noticeable: int
    costly: int = 0
    median_ns: float
    p95_ns: float
    max_ns: int
    mean_ns: float = 0.0
    wait_share: float
    aligned: str
    clock_scatter_ns: int = 0
    clock_bound_ns: int | None = 0
    rows: tuple[RankRow, ...] = ()


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """Exchanges of all with all whose parts differ, over the calls whose split sizes every rank
    recorded.

    `imbalance` is what the rank with most receives over the mean of the ranks, on average over the
    calls (1: even), `worst` in the worst call. `most` is the rank that receives most in the most
    calls (`most_calls`); `shares` are what each rank receives of all.
    """

    calls: int
    ranks: int
    imbalance: float
    worst: float
    most: str
    most_calls: int
    shares: tuple[tuple[str, float], ...]


class SlowestRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that the others wait for, over the window of one rank with its `steps`.

    `talking_share` is the share of its own window in which collectives run and nothing else of it;
    `waiting_share` is how much more of it the other ranks have on average: they wait, and
    `is_largest` says whether that is the largest part of their time. `meanwhile` is what its host
    does more than theirs, and `longer_kernels_ns` how much longer its kernels take (both over the
    window, less the mean of the other ranks; None where nothing stands out). `by` says what shows
    it: that it arrives last, or that it does what the others do not.
    """

    rank: str
    window_ns: int
    steps: int = 0
    waiting_share: float
    talking_share: float
    is_largest: bool = False
    meanwhile: HostPart | None = None
    longer_kernels_ns: int | None = None
    by: Literal["arrivals", "work"] = "arrivals"


RankKind = Literal["device", "range", "collective", "arrival"]


class RankCell(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of one rank: `of` what (`device`, `range`, `collective` or `arrival`), by name.

    A `share` is of the rank's window, else the value is in ns: of a collective the mean of its
    calls, of an arrival the mean time behind the first rank.
    """

    of: RankKind
    name: str
    value: float
    is_share: bool = True


class RankCells(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one rank by which it is compared with the others."""

    rank: str
    cells: tuple[RankCell, ...]


class RankDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A figure in which a group differs from the largest one: the medians of both."""

    of: RankKind
    name: str
    value: float
    usual: float
    is_share: bool = True


class RankGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that no figure tells apart. `differs` is what tells them from the largest group, the
    largest difference first (empty for that one), `cells` are their medians.
    """

    ranks: tuple[str, ...]
    cells: tuple[RankCell, ...]
    differs: tuple[RankDifference, ...] = ()


class Communication(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives and peer copies of a trace, of many files, or of a run. `skew` None: `needs` says
    what would give it. `ranks` are the figures of each rank, and `groups` those that are alike: the
    ones that stand out most first, the largest last.
    """

    devices: tuple[CommunicationTime, ...]
    collectives: tuple[CollectiveRow, ...]
    skew: Skew | None = None
    needs: str = ""
    slowest: SlowestRank | None = None
    ranks: tuple[RankCells, ...] = ()
    groups: tuple[RankGroup, ...] = ()
    exchange: Exchange | None = None

    @property
    def standing_out(self) -> tuple[str, ...]:
        """The ranks of all groups but the largest, those that stand out most first."""
        return tuple(rank for group in self.groups[:-1] for rank in group.ranks)
