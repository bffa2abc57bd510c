"""Paths over ranks whose collectives run on the CPU, where the main thread waits in silence."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.records import CriticalPath
from profharness.analysis.critical.summary import critical_path
from profharness.trace.collectives import Collective, encode
from profharness.trace.model import ClockDomain, Source, Trace
from tests.analysis.scene import Scene

US = 1_000
BEFORE, AFTER, LAST = 1 * US, 2 * US, 10 * US


@dataclass
class Rank:
    """Operators, and collectives from when the rank handed them over until their end."""

    ops: list[tuple[int, int]] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    now: int = 0

    def computes(self, lasting: int) -> None:
        self.ops.append((self.now, self.now + lasting))
        self.now += lasting


def run(seed: int, ranks: int, straggler: int | None = None) -> list[Rank]:
    """A random program: all compute, hand a collective over, and wait for its end."""
    dice = random.Random(seed)
    world = [Rank(now=dice.randrange(50)) for _ in range(ranks)]
    for _ in range(dice.randrange(3, 12)):
        for place, rank in enumerate(world):
            slow = 4 if place == straggler else 1
            rank.computes(slow * dice.randrange(5 * US, 80 * US))
            rank.now += BEFORE
        end = max(rank.now for rank in world) + dice.randrange(10 * US, 30 * US)
        for rank in world:
            rank.calls.append((rank.now, end))
            rank.now = end + AFTER
    for rank in world:
        rank.computes(LAST)
    return world


def trace_of(rank: Rank, number: int) -> Trace:
    source = Source(f"rank{number}.json", "kineto", rank=number, pid=7, clock=ClockDomain.RUN)
    scene = Scene(sources=(source,))
    for start, end in rank.ops:
        scene.op("aten::mm", start, end)
    told = scene.strings.code(encode(Collective("all_reduce", group="gloo [0, 1]")))
    for start, end in rank.calls:
        scene.mark("range", start, end, "gloo:all_reduce")
        scene.rows["marks"][-1] |= {"tid": 2, "collective": told}
    return scene.build()


def truth(world: list[Rank], first: int) -> dict[str, int]:
    """How much of a rank's path lies on which rank, by the clock that ran the program."""
    begin, place, at = world[first].ops[0][0], first, world[first].now
    held = dict.fromkeys((f"rank {number}" for number in range(len(world))), 0)
    for call in reversed(range(len(world[0].calls))):
        came = [rank.calls[call][0] for rank in world]
        last = came.index(max(came)) if came[place] < max(came) else place
        held[f"rank {place}"] += at - max(came)
        place, at = last, max(came)
    held[f"rank {place}"] += at - begin
    return {name: ns for name, ns in held.items() if ns}


def path_of(world: list[Rank], *changes: str) -> CriticalPath:
    traces = [trace_of(rank, number) for number, rank in enumerate(world)]
    found = critical_path(traces, [parse(change) for change in changes])
    assert found is not None
    return found


def test_paths_lie_where_the_clock_had_them() -> None:
    crossed = 0
    for seed in range(20):
        world = run(seed, 2 + seed % 3)
        for number, path in enumerate(path_of(world).processes):
            assert sum(part.ns for part in path.segments.values()) == path.window_ns
            expected = truth(world, number)
            crossed += len(expected) > 1
            assert (path.places or {path.process: path.window_ns}) == expected, seed
    assert crossed > 20


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_planted_straggler_holds_most_of_all_paths(ranks: int) -> None:
    world = run(1, ranks, straggler=1)
    for path in path_of(world).processes:
        held = path.places or {path.process: path.window_ns}
        assert held["rank 1"] > 0.8 * path.window_ns
        largest = path.rows[0]
        assert (largest.kind, largest.name) == ("host_operator", "aten::mm")
        assert largest.process in ("rank 1", "")


def test_hidden_communication_does_not_hide_the_straggler() -> None:
    """The wait for a rank that comes later stays; only what follows its arrival goes."""
    world = run(1, 2, straggler=1)
    first = path_of(world, "hide-communication").processes[0]
    after_last_came = sum(
        end - max(rank.calls[call][0] for rank in world)
        for call, (_, end) in enumerate(world[0].calls)
    )
    made = first.what_if[1]
    assert made.window_ns - made.forecast_ns == after_last_came
    assert first.segments["collective"].ns == after_last_came
    assert made.next_limit == "collective"


def test_one_rank_alone_waits_in_its_collectives() -> None:
    world = run(2, 2)
    alone = critical_path(trace_of(world[0], 0), [parse("hide-communication")])
    assert alone is not None
    [path] = alone.processes
    waited = sum(end - start for start, end in world[0].calls)
    assert path.segments["collective"].ns == waited
    assert path.window_ns - path.what_if[1].forecast_ns == waited
    assert path.rows[0].name in ("aten::mm", "gloo:all_reduce")


def test_who_computes_meanwhile_does_not_wait() -> None:
    """A collective that ends inside of an operator that goes on for long."""
    rank = Rank()
    rank.computes(10 * US)
    rank.calls.append((rank.now + 1, rank.now + 30 * US))
    rank.computes(200 * US)
    found = critical_path(trace_of(rank, 0))
    assert found is not None
    assert set(found.segments) == {"host_operator"}
