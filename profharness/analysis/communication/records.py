"""What the analysis says of collectives and copies between devices, as typed records. Nothing is
computed here.
"""

from __future__ import annotations

import msgspec


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
    """

    rank: str
    calls: int
    last: int
    wait_ns: int
    mean_behind_ns: float
    last_costly: int = 0


class Skew(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of arrival at the same collective: the last rank's kernel start less the first
    one's, in ns, over matched calls.

    `noticeable` calls have a difference that counts, `costly` ones make up most (80 %) of all
    waiting; `aligned` says how the ranks' clocks were put together. The wait of a rank in a call is
    the last arrival less its own.
    """

    ranks: int
    matched: int
    unmatched: int
    noticeable: int
    costly: int = 0
    median_ns: float
    p95_ns: float
    max_ns: int
    wait_share: float
    aligned: str
    rows: tuple[RankRow, ...] = ()


class Communication(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives and peer copies of a trace, of many files, or of a run. `skew` None: `needs` says
    what would give it.
    """

    devices: tuple[CommunicationTime, ...]
    collectives: tuple[CollectiveRow, ...]
    skew: Skew | None = None
    needs: str = ""
