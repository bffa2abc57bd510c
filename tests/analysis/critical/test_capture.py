"""Captured graphs on made-up programs whose replay runs by the same clock, and on small scenes of
what cannot be captured.
"""

from __future__ import annotations

import pytest

from profharness.analysis.critical.capture import GAP_IN_GRAPH_NS
from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.records import Forecast
from profharness.analysis.critical.summary import critical_path
from profharness.trace.model import Source
from tests.analysis.critical.replayed_worlds import CALL, GAP, RETURN, eager, program, replayed
from tests.analysis.scene import Scene

US = 1_000


def forecast(scene: Scene, change: str = "graphs") -> Forecast:
    found = critical_path(scene.build(), [parse(change)])
    assert found is not None
    return found.processes[0].what_if[1]


def check(seed: int) -> None:
    """The forecast against the replay. What a call that waited takes without a wait, how late one
    returns that did not, and the gap before a graph, where no two launches of the recorded run
    queued, are not known: that is all by which it may be off.
    """
    actions = program(seed)
    made = forecast(eager(actions).scene)
    waits = sum(action.what == "sync" for action in actions)
    off = waits * (CALL + RETURN) + GAP * sum(action.what in ("sync", "load") for action in actions)
    truths = [replayed(actions, gap) for gap in (GAP, GAP_IN_GRAPH_NS)]
    assert min(truths) - off <= made.forecast_ns <= max(truths) + off, seed
    assert made.at_most_ns is not None
    least, best = made.window_ns - made.at_most_ns, replayed(actions, 0, at_best=True)
    assert best - off <= least <= best, seed
    assert least <= made.forecast_ns <= made.window_ns, seed


def test_a_forecast_is_what_a_replay_takes_and_no_replay_gains_more_than_at_most() -> None:
    for seed in range(30):
        check(seed)


@pytest.mark.slow
def test_the_same_of_500_programs() -> None:
    for seed in range(500):
        check(seed)


def launches(scene: Scene, begin: int, count: int) -> None:
    """Operators of 40 us, 50 us apart, each with a kernel of 1 us."""
    for number in range(count):
        at = begin + number * 50 * US
        scene.op("aten::add", at, at + 40 * US)
        scene.kernel(at + 15 * US, at + 16 * US, scene.launch(at + 10 * US, at + 12 * US))


def test_an_operator_that_reads_a_value_is_in_no_graph() -> None:
    """Two graphs of three launches with an `aten::item` of 30 us between them, which stays whole;
    so do the 10 us between the operators and it, and before the end.
    """
    scene = Scene()
    launches(scene, 0, 3)
    scene.op("aten::item", 150 * US, 180 * US)
    scene.copy(160 * US, 161 * US, scene.call("hipMemcpyAsync", 153 * US, 157 * US), kind="d2h")
    scene.call("hipStreamSynchronize", 158 * US, 165 * US)
    launches(scene, 190 * US, 3)
    scene.call("hipDeviceSynchronize", 340 * US, 341 * US)
    made = forecast(scene)
    assert made.forecast_ns == pytest.approx((2 + 10 + 30 + 10 + 2 + 10 + 1) * US, abs=8 * US)


def test_a_value_that_nobody_reads_costs_nothing() -> None:
    scene = Scene()
    scene.op("aten::add", 0, 20 * US)
    scene.kernel(15 * US, 16 * US, scene.launch(10 * US, 12 * US))
    scene.op("aten::item", 20 * US, 50 * US)
    scene.op("aten::_local_scalar_dense", 21 * US, 49 * US)
    scene.copy(30 * US, 31 * US, scene.call("hipMemcpyAsync", 23 * US, 27 * US), kind="d2h")
    scene.call("hipStreamSynchronize", 28 * US, 35 * US)
    scene.op("aten::add", 50 * US, 70 * US)
    scene.kernel(65 * US, 66 * US, scene.launch(60 * US, 62 * US))
    assert forecast(scene, "no-sync").forecast_ns == 40 * US


def test_a_pageable_copy_cuts_a_graph() -> None:
    scene = Scene()
    launches(scene, 0, 2)
    scene.op("aten::copy_", 100 * US, 140 * US)
    by = scene.call("hipMemcpyAsync", 130 * US, 138 * US)
    scene.copy(139 * US, 140 * US, by, kind="h2d")
    pageable = scene.strings.code("Memcpy HtoD (Pageable -> Device)")
    launches(scene, 150 * US, 2)
    whole = forecast(scene).forecast_ns
    scene.rows["copies"][0]["name"] = pageable
    cut = forecast(scene).forecast_ns
    assert cut >= whole + 40 * US


def test_time_between_two_files_stays() -> None:
    sources = (Source(f"{name}.json", "kineto", pid=7, pass_name="torch") for name in "ab")
    scene = Scene(sources=tuple(sources))
    launches(scene, 0, 3)
    first = {name: len(rows) for name, rows in scene.rows.items()}
    launches(scene, 1_000 * US, 3)
    for name, rows in scene.rows.items():
        for row in rows[first[name] :]:
            row["source"] = 1
    made = forecast(scene)
    assert made.window_ns == 1_140 * US
    assert made.forecast_ns == pytest.approx(860 * US, abs=20 * US)
    assert made.at_most_ns == pytest.approx(280 * US, abs=20 * US)
