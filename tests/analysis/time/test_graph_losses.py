"""Replays of graphs that show too few kernels: which are compared, with what, and when what they
lost may have run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time import graph_losses as losses
from profharness.analysis.time.device_work import work_of
from profharness.analysis.time.graph_losses import graph_losses, of_lost_graph_kernels
from profharness.stats.intervals import merge
from profharness.trace.model import Source, Trace
from tests.analysis.scene import Scene

US = 1_000
PERIOD, LENGTH = 600 * US, 19 * US
FULL = tuple(f"node{number}" for number in range(30))
LAST = FULL[-1:]


def replays(
    shown: Sequence[Sequence[str]], *, steps: bool = False, workgroups: int = -1, per_step: int = 1
) -> Scene:
    """A launch each 600 µs, and 100 µs later what it shows of its kernels, 19 µs each."""
    scene = Scene()
    for number, names in enumerate(shown):
        at = 1000 * US + number * PERIOD
        if steps and number % per_step == 0:
            scene.mark("step", at - 10 * US, at - 10 * US + per_step * PERIOD)
        graph = scene.call("hipGraphLaunch", at, at + 10 * US)
        for place, name in enumerate(names):
            begin = at + 100 * US + place * LENGTH
            scene.kernel(begin, begin + LENGTH, graph, name=name, workgroups=workgroups)
    return scene


def short(trace: Trace) -> list[tuple[int, int, bool]]:
    """Of each launch that shows too little: how many kernels it shows and lacks, and whether it is
    judged.
    """
    losses = graph_losses(trace, work_of(trace))
    return list(
        zip(losses.shown.tolist(), losses.lost.tolist(), losses.judged.tolist(), strict=True)
    )


@pytest.mark.parametrize("steps", [False, True])
def test_nearly_all_replays_lost_nearly_all_kernels(steps: bool) -> None:
    """The fullest replay is the witness, where the median has lost its kernels, too."""
    trace = replays([LAST] * 7 + [FULL] + [LAST] * 12, steps=steps).build()
    found = short(trace)
    assert [one[:2] for one in found] == [(1, 29)] * 19
    assert [one[2] for one in found] == [False, *[True] * 17, False]
    summary = summarise_trace(trace, "a.json")
    (item,) = [one for one in summary.findings if one.id == "graph-kernels-missing"]
    assert item.figures == {
        "graph_launches": 20,
        "without_kernels": 0,
        "short_replays": 17,
        "lost_kernels": 17 * 29,
    }
    assert summary.verdict is None
    split = summary.partition
    assert split is not None
    assert split.compute_ns == 49 * LENGTH
    high = split.window_ns - split.idle_ns
    assert 0.9 * split.window_ns < high <= 20 * 30 * LENGTH


def test_what_a_replay_lost_may_have_run_from_its_launch_on() -> None:
    trace = replays([FULL, FULL, LAST, *[FULL] * 7], steps=True).build()
    found = merge(of_lost_graph_kernels(trace, work_of(trace), 0))
    at = 1000 * US + 2 * PERIOD
    # the graph before it is at work until 70 µs after the launch
    begin = int(work_of(trace).busy(0).times.end[1])
    free = 100 * US - (begin - at)
    assert found.start.tolist() == [at]
    assert found.end.tolist() == [at + 100 * US + LENGTH + 29 * LENGTH - free]


def test_equal_replays_and_those_that_the_recording_cut_are_believed() -> None:
    assert short(replays([LAST] * 20).build()) == []
    cut = short(replays([FULL[3:], *[FULL] * 10, FULL[:9]], steps=True).build())
    assert [one[2] for one in cut] == [False, False]
    trace = replays([FULL[3:], *[FULL] * 10, FULL[:9]], steps=True).build()
    assert "graph-kernels-missing" not in {one.id for one in summarise_trace(trace, "a").findings}


def test_graphs_that_take_turns_are_different_ones() -> None:
    """Each is compared at its place of the steps, or not at all without steps."""
    first, second = FULL[:4], FULL[:20]
    assert short(replays([first, second] * 8).build()) == []
    assert short(replays([first, second] * 8, steps=True, per_step=2).build()) == []
    lost = [*[first, second] * 3, first[:2], second, *[first, second] * 3]
    assert short(replays(lost, steps=True, per_step=2).build()) == [(2, 2, True)]


def test_other_kernels_or_grids_are_another_graph() -> None:
    other = ("else", *FULL[:5])
    assert short(replays([*[FULL] * 6, other, *[FULL] * 6], steps=True).build()) == []
    mixed = replays([FULL] * 13, steps=True, workgroups=8)
    trace = mixed.build()
    kernels = trace.kernels
    grids = np.where(np.arange(len(kernels)) // 30 == 6, 4, kernels.workgroups)
    keep = ~((np.arange(len(kernels)) // 30 == 6) & (np.arange(len(kernels)) % 30 > 20))
    smaller = replace(trace, kernels=kernels.with_columns(workgroups=grids).take(keep))
    assert short(smaller) == []
    assert short(replace(trace, kernels=kernels.take(keep))) == [(21, 9, True)]


def test_without_grids_a_few_kernels_more_in_few_steps_may_be_another_graph() -> None:
    """A batch that needs one more reduction has the same names besides."""
    shown = [FULL[:28]] * 6 + [FULL] * 2 + [FULL[:28]] * 6
    assert short(replays(shown, steps=True).build()) == []
    told = short(replays(shown, steps=True, workgroups=8).build())
    assert [one[:2] for one in told] == [(28, 2)] * 12


def test_the_number_of_a_graph_says_what_belongs_together() -> None:
    scene = replays([FULL, LAST, *[FULL] * 3, LAST, FULL, LAST, FULL])
    trace = scene.build()
    size = [30, 1, 30, 30, 30, 1, 30, 1, 30]
    number = np.repeat([1, 2, 1, 1, 1, 1, 1, 2, 1], size)
    named = replace(trace, kernels=trace.kernels.with_columns(graph=number))
    assert short(named) == [(1, 29, True)]


def test_launches_are_not_judged_where_kernels_carry_no_id() -> None:
    scene = replays([FULL, (), FULL, FULL])
    assert [one[0] for one in short(scene.build())] == [0]
    scene.kernel(1_900 * US, 1_950 * US)
    assert short(scene.build()) == []


def test_a_graph_of_copies_alone_shows_no_kernel() -> None:
    scene = replays([FULL, FULL, FULL])
    graph = scene.call("hipGraphLaunch", 1_100 * US, 1_110 * US)
    scene.copy(1_750 * US, 1_760 * US, graph)
    assert short(scene.build()) == []


def test_the_capture_tells_what_all_replays_lost() -> None:
    scene = Scene()
    scene.call("hipStreamBeginCapture", 0, 1 * US)
    for number in range(30):
        scene.launch((2 + number) * US, (2 + number) * US + 500)
    scene.call("hipStreamEndCapture", 40 * US, 41 * US)
    for number in range(6):
        at = 1000 * US + number * PERIOD
        graph = scene.call("hipGraphLaunch", at, at + 10 * US)
        scene.kernel(at + 100 * US, at + 100 * US + LENGTH, graph, name="node29")
        scene.mark("step", at - 10 * US, at - 10 * US + PERIOD)
    trace = scene.build()
    launched = np.full(len(trace.api), -1, np.int64)
    names = [trace.strings.code(name) for name in FULL]
    launched[1:31] = names
    named = replace(trace, api=trace.api.with_columns(kernel=launched))
    found = short(named)
    assert [one[:2] for one in found] == [(1, 29)] * 6
    assert [one[2] for one in found] == [False, *[True] * 4, False]
    assert short(trace) == []


def test_places_are_those_in_the_steps_of_the_own_process() -> None:
    """Two graphs take turns, of which one has what the other has and more. From the sixth step on
    the steps of the other rank begin half a step later.
    """
    scene = Scene(
        sources=(Source("a", "kineto", rank=0, pid=7), Source("b", "kineto", rank=1, pid=8))
    )
    scene.kernel(0, 10 * US, scene.launch(0, 1 * US), stream=1)
    for number in range(21):
        at = 1000 * US + number * PERIOD
        if number % 2 == 0 and number < 20:
            late = PERIOD if number >= 10 else 0
            for source, begin in enumerate((at - 10 * US + late, at - 10 * US)):
                scene.mark("step", begin, begin + 2 * PERIOD, pid=7 + source, source=source)
        graph = scene.call("hipGraphLaunch", at, at + 10 * US, pid=8, source=1)
        for place, name in enumerate(FULL if number % 2 == 0 else FULL[:6]):
            begin = at + 100 * US + place * LENGTH // 2
            scene.kernel(begin, begin + LENGTH // 2, graph, name=name, source=1)
    assert short(scene.build()) == []


def test_captures_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = replays([FULL, FULL, FULL[:9], FULL] * 3, steps=True, per_step=4)
    scene.call("hipStreamBeginCapture", 0, 1 * US)
    asked: list[Trace] = []
    monkeypatch.setattr(losses, "captured_graphs", lambda trace: asked.append(trace) or ())
    trace = scene.build()
    graph_losses(trace, work_of(trace))
    assert len(asked) == 1


def test_a_device_whose_only_records_last_no_time_says_nothing_of_what_graphs_lost() -> None:
    scene = replays([()] * 9)
    scene.kernel(2000 * US, 2000 * US, scene.launch(1990 * US, 1991 * US))
    trace = scene.build()
    assert not len(of_lost_graph_kernels(trace, work_of(trace), 0))
