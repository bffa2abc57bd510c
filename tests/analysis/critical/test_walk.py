"""The path of made-up programs against a search through all their records, and against the truth of
the clock that ran them.
"""

from __future__ import annotations

import pytest

from profharness.analysis.critical.graph import Graph, graph_of
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.rerun import rerun
from profharness.analysis.critical.scope import scopes
from profharness.analysis.critical.segments import segments_of
from profharness.analysis.critical.walk import Edges, path_of
from tests.analysis.critical.worlds import GAP, LATENCY, RETURN, Chain, World, brute_force, run

WORLDS = 40


def graph(world: World) -> Graph:
    [scope] = scopes(world.trace())
    return graph_of(scope)


def chain_of(made: Graph, edges: Edges) -> Chain:
    """The path in the words of the search, the host's edges joined."""
    strings, work = made.scope.trace.strings, made.scope.work
    chain: Chain = []
    for node, column, start, end in zip(
        edges.node.tolist(),
        edges.column.tolist(),
        edges.start.tolist(),
        edges.end.tolist(),
        strict=True,
    ):
        if node < made.works:
            what = ("latency", "gap", "event")[column]
        elif node < 2 * made.works:
            name = strings[int(made.scope.trace.kernels.name[work[node - made.works]])]
            what = name.replace("k", "kernel ")
        else:
            what = "return" if column else "host"
        if chain and what == "host" and chain[-1][0] == "host":
            chain[-1] = "host", chain[-1][1], end
        else:
            chain.append((what, start, end))
    return chain


def test_the_path_is_the_chain_of_last_arrivals() -> None:
    for seed in range(12):
        _check(seed)


@pytest.mark.slow
def test_the_path_of_200_programs_is_the_chain_of_last_arrivals() -> None:
    for seed in range(200):
        _check(seed)


def _check(seed: int) -> None:
    """The path against the search, and the replay against what was measured."""
    world = run(seed, 1 + seed % 4)
    made = graph(world)
    usual = made.arrived.latency_ns, made.arrived.gap_ns
    assert chain_of(made, path_of(made)) == brute_force(world, usual), seed
    again = rerun(made, made.cause, made.lag)
    assert again.window_ns == made.scope.window_ns
    assert (again.time == made.time).all()


def test_with_one_stream_each_cause_is_the_one_that_the_clock_had() -> None:
    for seed in range(WORLDS):
        world = run(seed, 1)
        made = graph(world)
        begin = made.scope.start
        for what, start, end in chain_of(made, path_of(made)):
            if what == "latency":
                assert end - start == LATENCY
            elif what == "gap":
                assert end - start == GAP
            elif what == "return":
                assert end - start == RETURN
        assert made.scope.end == world.end
        assert begin == min(start for start, _ in world.ops)


def test_segments_sum_to_the_window_and_touch() -> None:
    for seed in range(WORLDS):
        made = graph(run(seed, 3))
        found = segments_of(made, path_of(made))
        assert int(found.length.sum()) == made.scope.window_ns
        assert (found.length > 0).all()
        assert found.start[0] == made.scope.start
        assert found.end[-1] == made.scope.end
        assert (found.start[1:] == found.end[:-1]).all()


def test_causes_come_before_what_they_cause() -> None:
    for seed in range(WORLDS):
        made = graph(run(seed, 4))
        rank = made.order.argsort()
        for cause, lag in zip(made.cause, made.lag, strict=True):
            held = cause >= 0
            assert (rank[cause[held]] < rank[held.nonzero()[0]]).all()
            assert (made.time[cause[held]] + lag[held] <= made.time[held]).all()
        assert (made.points.role == Role.BEGIN).sum() == 1
