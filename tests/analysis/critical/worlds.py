"""Made-up programs with a known cause for everything: host threads that compute, launch, wait for
events and synchronise, run by a small clock of their own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from profharness.trace.model import Trace
from tests.analysis.scene import Scene

LATENCY, GAP, RETURN = 3_000, 500, 2_000
Chain = list[tuple[str, int, int]]
"""The path: what (host, kernel and number, latency, gap, event, return), start, end."""


@dataclass
class Work:
    """A kernel as it ran."""

    number: int
    stream: int
    called: int
    returned: int
    start: int
    end: int
    behind_wait: bool


@dataclass
class Sync:
    """A call that waits for the device, as it was made."""

    start: int
    end: int


@dataclass
class World:
    """A program that has run: its records, in order of the host's calls."""

    works: list[Work] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    ops: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0

    def trace(self) -> Trace:
        """The same as a tracer records it."""
        scene = Scene()
        for start, end in self.ops:
            scene.op("aten::mm", start, end)
        for work in self.works:
            by = scene.launch(work.called, work.returned)
            if work.behind_wait:
                scene.call("hipStreamWaitEvent", work.called - 40, work.called - 10)
            scene.kernel(work.start, work.end, by, name=f"k{work.number}", stream=work.stream)
        for sync in self.syncs:
            scene.call("hipDeviceSynchronize", sync.start, sync.end)
        return scene.build()


def run(seed: int, streams: int) -> World:
    """A random program: stretches of host time, launches on up to so many streams, some behind an
    event of another stream, and synchronisations. It ends with one.
    """
    dice, world, now = random.Random(seed), World(), 0
    free = [0] * streams
    slow = dice.random() < 0.5  # kernels longer than what the host needs for a launch
    for number in range(dice.randrange(5, 40)):
        begun = now
        now += dice.randrange(1_000, 30_000)
        if world.works and dice.random() < 0.15:
            now = _synchronise(world, now)
            continue
        stream = dice.randrange(streams)
        waits = streams > 1 and dice.random() < 0.3 and any(w.stream != stream for w in world.works)
        start = max(now + LATENCY, free[stream] + GAP if free[stream] else 0)
        if waits:
            now += 50
            awaited = max(w.end for w in world.works if w.stream != stream)
            start = max(start + 50, awaited + GAP)
        end = start + dice.randrange(2_000, 90_000 if slow else 9_000)
        returned = now + dice.randrange(500, 2_500)
        world.works.append(Work(number, stream, now, returned, start, end, waits))
        free[stream] = end
        now = returned + dice.randrange(100, 900)
        world.ops.append((begun + 10, now))
    world.end = _synchronise(world, now + 1_000)
    return world


def _synchronise(world: World, now: int) -> int:
    """Wait for everything that was launched; returns when the call did."""
    last = max((work.end for work in world.works), default=0)
    end = max(now + 700, last + RETURN if last > now else 0)
    world.syncs.append(Sync(now, end))
    return end


def brute_force(world: World, usual: tuple[int, int]) -> Chain:
    """From the last end backwards, always to what arrived last, by looking at every record. `usual`
    are the latency of a launch and the gap between work of a stream.
    """
    chain: Chain = []
    at, begin = world.end, min(work.called for work in world.works)
    begin = min(begin, *(start for start, _ in world.ops), *(s.start for s in world.syncs))
    while at > begin:
        at = _host(world, at, begin, chain, usual)
    merged: Chain = []
    for what, start, end in reversed(chain):
        if merged and what == "host" and merged[-1][0] == "host":
            merged[-1] = "host", merged[-1][1], end
        elif end > start:
            merged.append((what, start, end))
    return merged


def _host(world: World, at: int, begin: int, chain: Chain, usual: tuple[int, int]) -> int:
    """Back along the host to the last call that waited, and through the device to a launch."""
    waited = [(s, w) for s in world.syncs if s.end <= at and (w := _awaited(world, s)) is not None]
    if not waited:
        chain.append(("host", begin, at))
        return begin
    sync, work = max(waited, key=lambda pair: pair[0].end)
    chain.append(("host", sync.end, at))
    chain.append(("return", work.end, sync.end))
    latency, gap = usual
    while True:
        chain.append((f"kernel {work.number}", work.start, work.end))
        before = _last([w for w in world.works if w.stream == work.stream], work)
        other = _last([w for w in world.works if w.stream != work.stream], work)
        causes = [
            (min(before.end + gap, work.start) if before else -1, "gap"),
            (
                min(other.end + gap, work.start) if other and _follows(work, before, other) else -1,
                "event",
            ),
            (min(work.called + latency, work.start), "latency"),
        ]
        _, kind = max(causes, key=lambda cause: cause[0])
        if kind == "latency":
            chain.append((kind, work.called, work.start))
            return work.called
        earlier = before if kind == "gap" else other
        assert earlier is not None
        chain.append((kind, earlier.end, work.start))
        work = earlier


def _awaited(world: World, sync: Sync) -> Work | None:
    ended = [w for w in world.works if w.called < sync.start and w.end < sync.end]
    last = max(ended, key=lambda w: (w.end, w.start), default=None)
    return last if last is not None and sync.start < last.end else None


def _last(works: list[Work], work: Work) -> Work | None:
    """Which of the works ended last before another began, of those that were launched before it."""
    ended = [w for w in works if w.end <= work.start and w.called < work.called]
    return max(ended, key=lambda w: (w.end, w.start), default=None)


def _follows(work: Work, before: Work | None, other: Work) -> bool:
    """Whether work on another stream can have held this one up: by an event, or where nothing else
    explains so late a start.
    """
    if work.behind_wait:
        return True
    known = max(work.called, before.end if before else 0)
    return work.start - known > 10_000 and work.start - other.end <= 50_000
