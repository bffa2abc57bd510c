"""Paths that go on at other ranks, against a search through all records of all ranks."""

from __future__ import annotations

import random

import pytest

from profharness.analysis.critical import classes
from profharness.analysis.critical.crossing import Stretch, Walks
from profharness.analysis.critical.graph import Graph, graph_of
from profharness.analysis.critical.meetings import meetings
from profharness.analysis.critical.scope import scopes
from profharness.analysis.critical.summary import critical_path, paths_of
from profharness.trace.model import Source, Trace
from tests.analysis.critical.rank_worlds import ALL_REDUCE, Rank, Step, brute_force, run, trace_of
from tests.analysis.scene import Scene

US = 1_000
_WORDS = {
    classes.LAUNCH_LATENCY: "latency",
    classes.STREAM_GAP: "gap",
    classes.SYNC_RETURN: "return",
}


def graphs_of(traces: list[Trace]) -> list[Graph]:
    return [graph_of(scope) for trace in traces for scope in scopes(trace)]


def chain_of(graphs: list[Graph], stretches: list[Stretch]) -> list[Step]:
    """A path in the words of the search."""
    chain: list[Step] = []
    for one in stretches:
        strings, found = graphs[one.place].scope.trace.strings, one.segments
        for kind, name, start, end in zip(
            found.kind.tolist(),
            found.name.tolist(),
            found.start.tolist(),
            found.end.tolist(),
            strict=True,
        ):
            device = kind in (classes.KERNEL, classes.COLLECTIVE)
            what = strings[name] if device else _WORDS.get(kind, "host")
            if chain and what == "host" and chain[-1][:2] == (one.place, "host"):
                chain[-1] = *chain[-1][:3], end
            else:
                chain.append((one.place, what, start, end))
    return chain


def check(world: list[Rank], ahead: list[int], *, shared: bool) -> int:
    """All ranks' paths against the search; returns how often they went on at another rank."""
    graphs = graphs_of(
        [
            trace_of(rank, number, ahead=ahead[number], shared=shared)
            for number, rank in enumerate(world)
        ]
    )
    met = meetings(graphs)
    assert met.told is not None
    assert met.told.bound_ns == 0
    assert met.told.shared_clock == shared
    walks = Walks(graphs, met)
    usual = [(made.arrived.latency_ns, made.arrived.gap_ns) for made in graphs]
    crossings = 0
    for first, made in enumerate(graphs):
        stretches = walks.path_of(first)
        expected, crossed = brute_force(world, first, usual)
        moved = [
            (place, what, start + ahead[first], end + ahead[first])
            for place, what, start, end in expected
        ]
        assert chain_of(graphs, stretches) == moved
        crossings += crossed
        assert sum(int(one.segments.length.sum()) for one in stretches) == made.scope.window_ns
        edge = made.scope.start
        for one in stretches:
            for start, end in zip(one.segments.start, one.segments.end, strict=True):
                assert start == edge < end
                edge = end
        assert edge == made.scope.end
    return crossings


def test_paths_of_ranks_on_one_clock_are_the_chains_of_last_arrivals() -> None:
    assert sum(check(run(seed, 2 + seed % 3), [0] * 4, shared=True) for seed in range(12)) > 12


def test_paths_of_ranks_on_clocks_of_their_own_are_the_same() -> None:
    for seed in range(8):
        dice = random.Random(seed)
        ahead = [10**9 + dice.randrange(10**7) for _ in range(4)]
        assert check(run(seed, 2 + seed % 3), ahead, shared=False)


@pytest.mark.slow
def test_paths_of_ranks_of_100_programs() -> None:
    for seed in range(100, 200):
        check(run(seed, 2 + seed % 5), [0] * 6, shared=True)


@pytest.mark.parametrize("ranks", [2, 4])
def test_most_of_all_paths_lies_on_a_planted_straggler(ranks: int) -> None:
    world = run(5, ranks, straggler=1)
    found = critical_path([trace_of(rank, number) for number, rank in enumerate(world)])
    assert found is not None
    assert len(found.processes) == ranks
    for path in found.processes:
        assert sum(part.ns for part in path.segments.values()) == path.window_ns
        if path.rank != 1:
            assert sum(path.places.values()) == path.window_ns
            assert max(path.places, key=path.places.__getitem__) == "rank 1"
            assert path.places["rank 1"] > 0.7 * path.window_ns
            assert {row.process for row in path.rows} >= {"rank 1", path.process}


def test_ranks_without_collectives_in_common_stay_by_themselves() -> None:
    world = run(5, 2)
    for work in world[1].works:
        if work.call is not None:
            work.name = f"k{work.call}"
    found = critical_path([trace_of(rank, number) for number, rank in enumerate(world)])
    assert found is not None
    assert found.meetings is None
    assert all(path.places == {} for path in found.processes)


def test_no_path_goes_on_within_what_the_clock_can_be_wrong_by() -> None:
    """Ends that scatter by more than the ranks' arrivals differ say nothing of who came last."""
    dice, world = random.Random(1), run(3, 2)
    for rank in world:
        for work in rank.works:
            if work.call is not None:
                work.start, work.end = work.start, work.end + dice.randrange(400_000)
    traces = [trace_of(rank, number) for number, rank in enumerate(world)]
    found = critical_path(traces)
    assert found is not None
    assert found.meetings is not None
    assert found.meetings.bound_ns > 50_000
    assert all(path.places == {} for path in found.processes)


def test_ranks_of_one_trace_meet_too_and_are_drawn() -> None:
    """Rank 1 launches its collective 100 us after rank 0, which waits for it: only the last 40 us
    of the last one, and the return, are rank 0's own.
    """
    sources = tuple(Source(f"{rank}.json", "kineto", rank=rank, pid=7) for rank in range(2))
    scene = Scene(sources=sources)
    for rank, late in enumerate((0, 100 * US)):
        for call in range(3):
            at = call * 400 * US
            scene.op("aten::mm", at, at + late + 10 * US, source=rank)
            by = scene.launch(at + late + 4 * US, at + late + 6 * US, source=rank)
            scene.kernel(
                at + late + 10 * US, at + 150 * US, by, name=ALL_REDUCE, device=0, stream=rank,
                source=rank,
            )  # fmt: skip
            scene.call("hipDeviceSynchronize", at + late + 10 * US, at + 152 * US, source=rank)
    trace = scene.build()
    found = critical_path(trace)
    assert found is not None
    first, second = found.processes
    assert first.places == {"rank 1": first.window_ns - 42 * US, "rank 0": 42 * US}
    assert second.places == {}
    assert first.segments["collective"].ns == 3 * 40 * US
    (owner, parts), _ = paths_of(trace)
    assert {scope.source.rank for scope, _ in parts} == {0, 1}
    assert sum(int(found.length.sum()) for _, found in parts) == owner.window_ns
