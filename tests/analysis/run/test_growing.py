"""Steps that grow are a finding with their trend, of runs by the hooks' log and of traces."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.run.growing import growing_steps, steps_grow
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.summarise import summarise_trace
from profharness.stats.trend import FEWEST
from tests.analysis.run.test_steps import MS, Log, of_command
from tests.analysis.scene import Scene


def one_process(lengths_ms) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.rint(np.asarray(lengths_ms) * MS).astype(np.int64)
    return lengths, np.zeros(len(lengths), np.int64)


def scattered(count: int, spread: float) -> np.ndarray:
    return np.random.default_rng(count).normal(0, spread, count)


def test_a_run_whose_inputs_grow_with_each_step():
    """143 ms at first and 779 ms at last, with scatter: the mean is 461 ms."""
    log = Log()
    log.steps(np.linspace(143, 779, 200) + scattered(200, 5.0))
    (told,) = growing_steps(of_command(), log.trace())
    assert (told.id, told.severity, told.figures["steps"]) == ("steps-grow", "warning", 200)
    slope = (779 - 143) / 199 * MS
    low, high = (float(told.figures[f"slope_{end}_ns"]) for end in ("low", "high"))
    assert low <= slope <= high
    assert high - low < 0.05 * slope
    assert told.figures["first_ns"] == pytest.approx(143 * MS, rel=0.03)
    assert told.figures["last_ns"] == pytest.approx(779 * MS, rel=0.03)
    assert told.figures["mean_ns"] == pytest.approx(461 * MS, rel=0.01)
    assert "from 14" in told.message
    summary = summarise_run(of_command(), log.trace(), "run")
    assert [one.id for one in summary.findings].count("steps-grow") == 1


@pytest.mark.parametrize(
    "lengths",
    [
        np.full(200, 100.0) + scattered(200, 5.0),
        np.linspace(100, 115, 200),  # too little
        np.linspace(700, 100, 200),  # they shrink
        np.repeat([100.0, 200.0], 100) + scattered(200, 1.0),  # one jump
        np.tile(np.linspace(100, 200, 20), 10),  # a saw
        np.linspace(100, 700, FEWEST - 1),  # too few
    ],
    ids=["level", "little", "shrink", "jump", "saw", "few"],
)
def test_steps_that_do_not_grow_all_the_way(lengths: np.ndarray):
    assert steps_grow(*one_process(lengths)) == ()


def test_of_several_processes_the_one_that_grows_most_speaks():
    slow, fast = np.linspace(100, 150, 50), np.linspace(100, 400, 50)
    lengths = np.rint(np.concatenate((slow, fast)) * MS).astype(np.int64)
    (told,) = steps_grow(lengths, np.repeat([0, 1], 50))
    assert told.figures["last_ns"] == pytest.approx(400 * MS)


def test_a_trace_that_marks_growing_steps():
    scene, at = Scene(), 0
    for number in range(40):
        length = 1000 + 100 * number
        scene.mark("step", at, at + length, f"ProfilerStep#{number}")
        scene.kernel(at, at + length)
        at += length
    found = summarise_trace(scene.build(), "made up").findings
    (told,) = [one for one in found if one.id == "steps-grow"]
    assert told.figures["slope_ns"] == pytest.approx(100)


def test_trials_of_a_scan_are_no_series():
    scene, at = Scene(), 0
    for number in range(40):
        length = 1000 + 100 * number
        scene.mark("trial", at, at + length, point=f"torch-b{number}")
        scene.kernel(at, at + length)
        at += length
    found = summarise_trace(scene.build(), "made up").findings
    assert "steps-grow" not in {one.id for one in found}


def test_a_trace_of_equal_steps_has_none():
    scene = Scene()
    for number in range(40):
        scene.mark("step", 100 * number, 100 * number + 100, f"ProfilerStep#{number}")
        scene.kernel(100 * number, 100 * number + 90)
    assert "steps-grow" not in {one.id for one in summarise_trace(scene.build(), "x").findings}


@pytest.mark.parametrize("grows", ["device", "mark"])
def test_a_step_is_as_long_as_what_it_launched(grows: str):
    """The host marks a step each 20 µs, or in longer and longer ones, and runs ahead."""
    scene, mark, device = Scene(), 0, 10_000
    for number in range(40):
        host = 20_000 + (100 * number if grows == "mark" else 0)
        work = 50_000 + (2_000 * number if grows == "device" else 0)
        scene.mark("step", mark, mark + host, f"ProfilerStep#{number}")
        scene.kernel(device, device + work, scene.launch(mark + 1_000, mark + 1_001))
        mark, device = mark + host, device + work
    found = summarise_trace(scene.build(), "made up").findings
    told = [one for one in found if one.id == "steps-grow"]
    if grows == "mark":
        assert told == []
        return
    # nothing says when the first one began
    assert (told[0].figures["slope_ns"], told[0].figures["steps"]) == (pytest.approx(2_000), 39)
    assert told[0].message.endswith("of their mean of 90.00 µs, which few of them take")
