"""Made-up programs of several ranks that meet at collectives, run by one clock: each rank computes,
launches kernels and collectives on one stream, and waits for its device now and then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from profharness.trace.model import ClockDomain, Source, Trace
from tests.analysis.critical.worlds import GAP, LATENCY, RETURN
from tests.analysis.scene import Scene

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
Step = tuple[int, str, int, int]
"""A part of a path: rank, what (host, a kernel, latency, gap, return), start, end."""


@dataclass
class Work:
    """A kernel or a collective (with the number of its call) as it ran."""

    name: str
    called: int
    returned: int
    start: int
    end: int = 0
    call: int | None = None


@dataclass
class Rank:
    """What one rank did, and how far its host and its stream are."""

    works: list[Work] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    ops: list[tuple[int, int]] = field(default_factory=list)
    now: int = 0
    free: int = 0

    @property
    def begin(self) -> int:
        return self.ops[0][0]

    @property
    def end(self) -> int:
        return self.syncs[-1][1]


def run(seed: int, ranks: int, straggler: int | None = None) -> list[Rank]:
    """A random program; a straggler takes three times as long for what it computes."""
    dice = random.Random(seed)
    world = [Rank(now=dice.randrange(0, 5_000)) for _ in range(ranks)]
    plan = [dice.random() < 0.3 for _ in range(dice.randrange(12, 40))]
    for number, collective in enumerate([*plan, True]):
        for place, rank in enumerate(world):
            if rank.works and dice.random() < 0.2:
                _synchronise(rank)
            slow = 3 if place == straggler else 1
            _launch(rank, dice, slow, number if collective else None)
            if not collective:
                rank.works[-1].end = rank.works[-1].start + slow * dice.randrange(2_000, 30_000)
                rank.free = rank.works[-1].end
        if collective:
            end = max(rank.works[-1].start for rank in world) + dice.randrange(3_000, 9_000)
            for rank in world:
                rank.works[-1].end = rank.free = end
    for rank in world:
        _synchronise(rank)
    return world


def _launch(rank: Rank, dice: random.Random, slow: int, call: int | None) -> None:
    begun = rank.now
    called = begun + slow * dice.randrange(1_000, 20_000)
    returned = called + dice.randrange(500, 2_500)
    start = max(called + LATENCY, rank.free + GAP if rank.free else 0)
    name = ALL_REDUCE if call is not None else f"k{len(rank.works)}"
    rank.works.append(Work(name, called, returned, start, call=call))
    rank.now = returned + dice.randrange(100, 900)
    rank.ops.append((begun, rank.now))


def _synchronise(rank: Rank) -> None:
    called = rank.now + 300
    end = max(called + 700, rank.free + RETURN if rank.free > called else 0)
    rank.syncs.append((called, end))
    rank.now = end + 50


def trace_of(rank: Rank, number: int, *, ahead: int = 0, shared: bool = False) -> Trace:
    """The same as a tracer of this rank records it, on a clock that is ahead of the others'."""
    source = Source(f"rank{number}.json", "kineto", rank=number, pid=7)
    if shared:
        source = replace(source, clock=ClockDomain.RUN)
    scene = Scene(sources=(source,))
    for start, end in rank.ops:
        scene.op("aten::mm", start + ahead, end + ahead)
    for work in rank.works:
        by = scene.launch(work.called + ahead, work.returned + ahead)
        scene.kernel(work.start + ahead, work.end + ahead, by, name=work.name)
    for start, end in rank.syncs:
        scene.call("hipDeviceSynchronize", start + ahead, end + ahead)
    return scene.build()


def brute_force(
    world: list[Rank], first: int, usual: list[tuple[int, int]]
) -> tuple[list[Step], int]:
    """From the last end of a rank backwards, always to what arrived last, by looking at every
    record of every rank; with how often it went on at another rank. `usual` are each rank's latency
    of a launch and gap between work.
    """
    begin, place, at = world[first].begin, first, world[first].end
    chain: list[Step] = []
    crossed = 0
    work: Work | None = None
    while at > begin:
        rank = world[place]
        if work is None:
            work, at = _host(rank, place, at, chain)
            if work is None:
                break
        waited = _latest(world, work, place) if work.call is not None else place
        if waited != place:
            other = next(one for one in world[waited].works if one.call == work.call)
            chain.append((place, work.name, other.start, work.end))
            place, work, crossed = waited, other, crossed + 1
        else:
            chain.append((place, work.name, work.start, work.end))
        work, at = _start(world[place], place, work, usual[place], chain)
    cut = [(rank, what, max(start, begin), end) for rank, what, start, end in chain if end > begin]
    if cut and cut[-1][2] > begin:
        cut.append((cut[-1][0], "host", begin, cut[-1][2]))
    merged: list[Step] = []
    for step in reversed(cut):
        if merged and step[1] == "host" and merged[-1][:2] == step[:2]:
            merged[-1] = *merged[-1][:3], step[3]
        elif step[3] > step[2]:
            merged.append(step)
    return merged, crossed


def _latest(world: list[Rank], work: Work, place: int) -> int:
    """The rank that came last to the call of a piece: its own, if no other came later."""
    starts = [next(one.start for one in rank.works if one.call == work.call) for rank in world]
    return starts.index(max(starts)) if work.start < max(starts) else place


def _host(rank: Rank, place: int, at: int, chain: list[Step]) -> tuple[Work | None, int]:
    """Back along the host to the last call that waited, and the work that it waited for."""
    for start, end in sorted(rank.syncs, reverse=True):
        awaited = [w for w in rank.works if w.called < start and w.end < end]
        last = max(awaited, key=lambda w: w.end, default=None)
        if end <= at and last is not None and last.end > start:
            chain.append((place, "host", end, at))
            chain.append((place, "return", last.end, end))
            return last, last.end
    chain.append((place, "host", rank.begin, at))
    return None, rank.begin


def _start(
    rank: Rank, place: int, work: Work, usual: tuple[int, int], chain: list[Step]
) -> tuple[Work | None, int]:
    """What the start of a piece waited for: the work before it, or its launch."""
    latency, gap = usual
    ended = [w for w in rank.works if w.end <= work.start and w.called < work.called]
    before = max(ended, key=lambda w: w.end, default=None)
    by_stream = min(before.end + gap, work.start) if before is not None else -1
    if before is not None and by_stream >= min(work.called + latency, work.start):
        chain.append((place, "gap", before.end, work.start))
        return before, before.end
    chain.append((place, "latency", work.called, work.start))
    return None, work.called
