"""Steps by what they launched, each case written out by hand: marks, launches and work in ns."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.by_launch import _holding
from profharness.analysis.time.step_summaries import Selection, step_summaries
from profharness.analysis.time.steps import device_steps, measured
from profharness.trace.model import Device, Source
from tests.analysis.scene import Scene

TWO = (Device("0"), Device("1"))


def lengths(trace) -> list[float | None]:
    return [step.length_ns for step in device_steps(trace)]


def window(trace, device: int = 0) -> list[tuple[int, int]]:
    when = measured(trace).on(device)
    return list(zip(when.start.tolist(), when.end.tolist(), strict=True))


def step(scene: Scene, number: int, mark: tuple[int, int], *work: tuple[int, int, int]) -> None:
    """A mark, and kernels by (launch, start, end)."""
    scene.mark("step", *mark, f"ProfilerStep#{number}")
    for at, start, end in work:
        scene.kernel(start, end, scene.launch(at, at + 1))


def ahead() -> Scene:
    """The host marks a step each 20 ns, whose two kernels take 100 ns of the device."""
    scene = Scene()
    for number in range(4):
        host, device = 20 * number, 5 + 100 * number
        step(
            scene,
            number,
            (host, host + 20),
            (host + 2, device, device + 40),
            (host + 4, device + 50, device + 100),
        )
    return scene


def test_of_a_host_that_runs_ahead_steps_end_with_their_device_work():
    trace = ahead().build()
    assert lengths(trace) == [None, 100, 100, 100]
    assert [one.kernels for one in device_steps(trace)] == [2, 2, 2, 2]
    assert (window(trace), measured(trace).label) == ([(5, 405)], "4 steps")
    found = summarise_trace(trace, "a")
    assert found.metrics["step_time"].value == 100
    assert found.metrics["steps_per_second"].value == 1e7
    assert found.metrics["kernels_per_step"].value == 2
    assert (found.partition.window_ns, found.partition.compute_ns) == (400, 360)


def test_each_step_is_measured_when_its_work_ran():
    trace = ahead().build()
    found = step_summaries(trace, KernelFacts(trace), Selection())
    assert [(one.start_ns, one.dur_ns) for one in found] == [
        (5, 100),
        (105, 100),
        (205, 100),
        (305, 100),
    ]
    assert [one.partition.compute_ns for one in found] == [90, 90, 90, 90]


def test_of_a_host_that_is_late_the_first_step_begins_with_its_mark():
    scene = Scene()
    for number in range(3):
        at = 100 * number
        step(scene, number, (at, at + 98), (at + 10, at + 20, at + 60))
    trace = scene.build()
    assert lengths(trace) == [60, 100, 100]
    assert window(trace) == [(0, 260)]


def test_a_step_begins_where_work_from_before_the_recording_ended():
    scene = ahead()
    scene.rows["kernels"] = [
        {**row, "start_ns": row["start_ns"] + 200} for row in scene.rows["kernels"]
    ]
    scene.kernel(0, 200)  # of the same stream, and nobody recorded its launch
    trace = scene.build()
    assert lengths(trace) == [305 - 200, 100, 100, 100]
    assert window(trace) == [(200, 605)]


def test_a_step_begins_where_work_that_was_launched_before_its_mark_ended():
    scene = ahead()
    scene.kernel(-50, 4, scene.launch(-60, -59))
    assert lengths(scene.build()) == [101, 100, 100, 100]


def test_work_that_ended_before_the_first_mark_is_no_part_of_the_step():
    scene = Scene()
    scene.kernel(0, 10, scene.launch(-5, -4))
    for number in range(3):
        at = 1000 + 100 * number
        step(scene, number, (at, at + 100), (at + 10, at + 20, at + 60))
    assert window(scene.build()) == [(1000, 1260)]


def test_unlinked_work_of_a_stream_of_its_own_is_of_no_step_before():
    """Collectives whose correlation the tool lost run beside every step."""
    scene = Scene()
    for number in range(3):
        at = 100 * number
        step(scene, number, (at, at + 98), (at + 10, at + 20, at + 60), (at + 12, at + 60, at + 70))
        scene.kernel(at + 30, at + 80, name="ncclDevKernel_AllReduce", stream=1)
    assert lengths(scene.build()) == [70, 100, 100]


def test_marks_that_do_not_adjoin_leave_time_between_steps():
    """A validation from 100 to 190, whose kernel runs until 205, beyond the next mark's begin."""
    scene = Scene()
    step(scene, 0, (0, 100), (10, 20, 80))
    scene.kernel(150, 205, scene.launch(140, 141))
    step(scene, 1, (190, 290), (195, 210, 270))
    step(scene, 2, (290, 390), (300, 310, 370))
    trace = scene.build()
    assert lengths(trace) == [80, 65, 100]
    assert window(trace) == [(0, 370)]
    assert measured(trace).label == "3 steps, 125 ns between them"


def test_a_step_after_a_pause_begins_with_its_mark():
    scene = Scene()
    step(scene, 0, (0, 100), (10, 20, 80))
    step(scene, 1, (500, 600), (510, 520, 580))
    assert lengths(scene.build()) == [80, 80]


def test_a_step_that_launches_nothing_counts_between_others_only():
    scene = Scene()
    step(scene, 0, (0, 100))
    step(scene, 1, (100, 200), (110, 120, 180))
    step(scene, 2, (200, 300))
    step(scene, 3, (300, 400), (310, 320, 380))
    step(scene, 4, (400, 500))
    trace = scene.build()
    assert [one.number for one in device_steps(trace)] == [1, 2, 3]
    assert lengths(trace) == [80, 0, 200]
    assert summarise_trace(trace, "a").metrics["kernels_per_step"].value == pytest.approx(2 / 3)


def test_any_thread_of_the_process_launches_for_a_step_and_no_other_process():
    scene = Scene()
    scene.mark("step", 0, 100, "ProfilerStep#0")
    scene.mark("step", 200, 300, "ProfilerStep#0", pid=8)
    scene.kernel(20, 60, scene.launch(10, 11, tid=5), pid=7)
    scene.kernel(60, 90, scene.launch(20, 21, pid=8), pid=8)
    scene.kernel(220, 260, scene.launch(210, 211, pid=8), pid=8)
    found = device_steps(scene.build())
    assert [(one.kernels, one.span_ns[1]) for one in found] == [(1, 60), (1, 260)]


def test_the_kernels_of_a_graph_are_of_the_step_that_launched_it():
    scene = Scene()
    for number in range(3):
        scene.mark("step", 100 * number, 100 * number + 100, f"ProfilerStep#{number}")
        by = scene.call("hipGraphLaunch", 100 * number + 5, 100 * number + 6)
        for at in range(5):
            start = 1000 + 500 * number + 100 * at
            scene.kernel(start, start + 90, by)
    trace = scene.build()
    assert [one.kernels for one in device_steps(trace)] == [5, 5, 5]
    assert lengths(trace) == [None, 500, 500]


def test_each_device_has_its_window_and_they_are_summed():
    scene = Scene(devices=TWO)
    for number in range(3):
        at = 100 * number
        scene.mark("step", at, at + 98, f"ProfilerStep#{number}")
        scene.kernel(at + 10, at + 60, scene.launch(at + 1, at + 2))
        scene.kernel(at + 20, at + 90, scene.launch(at + 3, at + 4), device=1)
    trace = scene.build()
    assert (window(trace), window(trace, 1)) == ([(0, 260)], [(0, 290)])
    common = measured(trace).when
    assert (common.start.tolist(), common.end.tolist()) == ([0], [260])
    found = summarise_trace(trace, "a").partition
    assert (found.window_ns, found.compute_ns) == (260 + 290, 150 + 210)


def test_a_device_that_a_step_leaves_alone_is_idle_until_it_ends_on_the_others():
    scene = Scene(devices=TWO)
    for number in range(3):
        at = 100 * number
        scene.mark("step", at, at + 98, f"ProfilerStep#{number}")
        scene.kernel(at + 10, at + 60, scene.launch(at + 1, at + 2))
    scene.kernel(20, 50, scene.launch(3, 4), device=1)
    assert window(scene.build(), 1) == [(0, 260)]


def test_a_single_step_has_a_length_where_it_ends_before_its_mark():
    scene = Scene()
    step(scene, 0, (0, 100), (10, 20, 80))
    assert lengths(scene.build()) == [80]
    scene = Scene()
    step(scene, 0, (0, 100), (10, 20, 180))
    trace = scene.build()
    assert lengths(trace) == [None]
    found = summarise_trace(trace, "a")
    assert found.metrics["step_time"].value is None
    assert "two steps" in found.metrics["step_time"].needs
    assert found.partition.window_ns == 160


def test_marks_hold_where_launches_are_not_known():
    scene = ahead()
    scene.rows["api"] = []
    trace = scene.build()
    assert lengths(trace) == [20, 20, 20, 20]
    assert window(trace) == [(0, 80)]
    scene = ahead()
    for row in scene.rows["kernels"][1:]:
        row["correlation"] = -1
    assert lengths(scene.build()) == [20, 20, 20, 20]


def test_marks_of_a_file_of_their_own_are_of_the_process_that_launched():
    """As rocprofv3 writes ranges, calls and kernels of one process apart."""
    source = Source("a_marker_api_trace.csv", "rocprofv3-csv", host="n", pid=7)
    scene = ahead()
    scene.sources = (source, Source("a_hip_api_trace.csv", "rocprofv3-csv", host="n", pid=7))
    for table in ("kernels", "api"):
        scene.rows[table] = [{**row, "source": 1} for row in scene.rows[table]]
    assert lengths(scene.build()) == [None, 100, 100, 100]


def test_a_slow_first_step_takes_the_one_without_a_length_with_it():
    scene = Scene()
    ends = [50, 900, 1000, 1101, 1200, 1300]
    for number, end in enumerate(ends):
        begin = 5 if number == 0 else ends[number - 1]
        step(scene, number, (4 * number, 4 * number + 4), (4 * number + 1, begin, end))
    trace = scene.build()
    assert lengths(trace) == [None, 850, 100, 101, 99, 100]
    assert (window(trace), measured(trace).label) == ([(900, 1300)], "4 steady of 6 steps")


def test_the_critical_path_is_of_the_same_window():
    from profharness.analysis.critical.summary import critical_path

    path = critical_path(ahead().build()).processes[0]
    assert (path.start_ns, path.window_ns) == (5, 400)
    assert [one.window_ns for one in path.steps] == [100, 100, 100, 100]
    assert sum(part.ns for part in path.segments.values()) == 400


def test_overlapping_marks_give_work_to_the_one_that_began_last():
    scene = Scene()
    scene.mark("step", 0, 100, "ProfilerStep#0")
    scene.mark("step", 40, 60, "ProfilerStep#1")
    for at in (10, 50, 80):
        scene.kernel(100 + at, 110 + at, scene.launch(at, at + 1))
    assert [one.kernels for one in device_steps(scene.build())] == [2, 1]


def outlived(*, device: int) -> Scene:
    """Six steps of 50 µs on one device; the first launches 300 µs on another stream, too."""
    scene = Scene(devices=TWO)
    for number in range(6):
        host, begin = 20_000 * number, 5_000 + 50_000 * number
        step(scene, number, (host, host + 20_000), (host + 1_000, begin, begin + 50_000))
    scene.kernel(5_000, 305_007, scene.launch(2_000, 2_001), device=device, stream=1)
    return scene


def test_a_device_on_which_a_step_launches_nothing_is_not_in_its_length():
    trace = outlived(device=1).build()
    assert lengths(trace) == [None, *[50_000] * 5]
    assert window(trace, 1) == window(trace, 0) == [(55_000, 305_000)]
    assert summarise_trace(trace, "a").metrics["steps_per_second"].value == 20_000
    found = step_summaries(trace, KernelFacts(trace), Selection())
    assert [one.dur_ns for one in found] == [300_007, *[50_000] * 5]


def test_steps_that_work_of_an_earlier_one_outlives_have_no_length():
    found = summarise_trace(outlived(device=0).build(), "a")
    for name in ("steps_per_second", "step_time"):
        assert found.metrics[name].value is None
        assert "outlives" in found.metrics[name].needs
    assert [item.id for item in found.findings] == ["host-ahead"]
    assert "step_ns" not in found.findings[0].figures
    assert "0 ns" not in found.findings[0].message


def test_a_process_whose_steps_have_no_length_is_not_in_the_mean():
    scene = outlived(device=0)
    scene.sources = (*scene.sources, Source("b.json", "kineto", pid=8))
    for number in range(6):
        at = 50_000 * number
        scene.mark("step", at, at + 50_000, f"ProfilerStep#{number}", pid=8, source=1)
        launch = scene.launch(at + 1, at + 2, pid=8, source=1)
        scene.kernel(at + 10, at + 20_000, launch, device=1, stream=2, source=1)
    rate = summarise_trace(scene.build(), "a").metrics["steps_per_second"].value
    assert rate == pytest.approx(6 / 270e-6)


def test_the_time_between_steps_is_not_added_up_over_devices():
    scene = Scene(devices=TWO)
    for number in range(4):
        at = 100_000 * number + (50_000 if number > 1 else 0)
        scene.mark("step", at, at + 100_000, f"ProfilerStep#{number}")
        for device in (0, 1):
            launch = scene.launch(at + 1_000 + device, at + 1_001 + device)
            scene.kernel(at + 2_000, at + 90_000, launch, device=device, stream=device)
    assert measured(scene.build()).label == "4 steps, 60.00 µs between them"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1), st.data())
def test_of_marks_that_overlap_the_last_one_that_holds_an_instant_counts(drawn, data):
    marks = sorted(drawn)
    start = np.array([begin for begin, _ in marks])
    end = start + np.array([length for _, length in marks])
    at = np.array(data.draw(st.lists(st.integers(-1, 70), min_size=1)))
    step, held = _holding(end, at, np.searchsorted(start, at, "right") - 1)
    for instant, place, inside in zip(at, step, held, strict=True):
        holding = np.flatnonzero((start <= instant) & (instant < end))
        assert inside == (len(holding) > 0)
        begun = np.flatnonzero(start <= instant)
        assert place == (holding[-1] if inside else begun[-1] if len(begun) else -1)


def test_one_mark_around_many_is_no_search_per_mark():
    count = 200_000
    end = 10 * np.arange(count) + 5
    end[0] = 10 * count
    at = 10 * np.arange(count) + 7
    before = time.process_time()
    step, held = _holding(end, at, np.arange(count))
    assert time.process_time() - before < 2  # a walk back takes minutes
    assert held.all()
    assert not step.any()
