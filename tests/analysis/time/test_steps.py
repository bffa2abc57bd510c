from __future__ import annotations

import pytest

from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.steps import everything, measured, steady, steps
from profharness.trace.model import Source, Strings, Trace
from tests.analysis.scene import Scene


def spans(windows) -> list[tuple[int, int]]:
    return list(zip(windows.when.start.tolist(), windows.when.end.tolist(), strict=True))


def stepped(lengths: list[int]) -> Scene:
    scene = Scene()
    at = 0
    for number, length in enumerate(lengths):
        scene.mark("step", at, at + length, f"ProfilerStep#{number}")
        scene.kernel(at + 1, at + length - 1)
        at += length
    return scene


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ([500, 300, 100, 101, 99, 100, 100], 5),
        ([100, 101, 99, 100, 500], 5),
        ([100, 104, 96, 100], 4),
        ([500, 100], 2),
        ([100], 1),
    ],
)
def test_slow_first_steps_are_left_out(lengths, kept):
    assert len(steady(steps(stepped(lengths).build()))) == kept


def test_the_window_of_steps_runs_from_the_first_steady_one_to_the_last():
    found = measured(stepped([500, 300, 100, 101, 99, 100, 100]).build())
    assert (spans(found), found.label, found.steps) == ([(800, 1300)], "5 steady of 7 steps", 5)


def test_trials_go_before_steps_and_leave_the_time_between_them_out():
    scene = stepped([100, 100])
    scene.mark("trial", 10, 20)
    scene.mark("trial", 30, 40)
    found = measured(scene.build())
    assert (spans(found), found.label) == ([(10, 20), (30, 40)], "2 trials")


def test_points_have_their_own_trials():
    scene = Scene()
    scene.kernel(0, 100)
    for point, at in (("a", 0), ("b", 50)):
        scene.mark("point", at, at + 50, point=point)
        scene.mark("trial", at + 10, at + 40, point=point)
    trace = scene.build()
    assert spans(measured(trace, "b")) == [(60, 90)]
    assert spans(measured(trace)) == [(10, 40), (60, 90)]


def test_a_point_without_trials_is_its_own_mark():
    scene = Scene()
    scene.kernel(0, 100)
    scene.mark("point", 50, 70, point="b")
    assert (spans(measured(scene.build(), "b")), measured(scene.build(), "b").label) == (
        [(50, 70)],
        "point b",
    )


def test_several_processes_have_the_time_in_common():
    scene = Scene()
    scene.kernel(0, 100)
    scene.mark("step", 0, 60, pid=1)
    scene.mark("step", 20, 90, pid=2)
    assert spans(measured(scene.build())) == [(20, 60)]


def test_processes_that_ran_in_turn_count_together():
    scene = Scene()
    scene.kernel(0, 100)
    scene.mark("step", 0, 30, pid=1)
    scene.mark("step", 50, 90, pid=2)
    assert spans(measured(scene.build())) == [(0, 30), (50, 90)]


def test_marks_that_do_not_meet_the_device_work_are_not_used():
    scene = Scene()
    scene.kernel(1000, 1100)
    scene.mark("step", 0, 60)
    assert (spans(measured(scene.build())), measured(scene.build()).label) == (
        [(1000, 1100)],
        "all device work",
    )


def test_without_marks_all_device_work_then_operators_then_host_records():
    scene = Scene()
    scene.op("aten::mm", 5, 300)
    scene.call("hipGetDevice", 0, 1)
    assert (spans(everything(scene.build())), everything(scene.build()).label) == (
        [(5, 300)],
        "all operators",
    )
    scene.kernel(10, 20)
    scene.copy(30, 50)
    assert spans(everything(scene.build())) == [(10, 50)]
    assert len(everything(Trace(sources=(Source("e", "kineto"),), strings=Strings())).when) == 0


def test_items_and_labels_are_read():
    scene = Scene()
    scene.mark("step", 0, 10, "profharness.step:1:32", items=32)
    scene.mark("step", 10, 20, "ProfilerStep#2")
    assert [(step.label, step.items, step.dur_ns) for step in steps(scene.build())] == [
        ("profharness.step:1:32", 32, 10),
        ("ProfilerStep#2", None, 10),
    ]


def test_marks_of_the_file_with_the_kernels_go_before_the_harness_own_record():
    scene = Scene(sources=(Source("trials.csv", "trials"), Source("a.json", "kineto")))
    scene.kernel(0, 100, source=1)
    scene.mark("trial", 0, 50, source=0)
    assert len(steps(scene.build())) == 1
    scene.mark("trial", 2, 48, source=1)
    assert [(step.start_ns, step.end_ns) for step in steps(scene.build())] == [(2, 48)]


def _in_two_files(host: str = "a") -> Scene:
    """Device work at 0 to 100 and 500 to 600, each in a file of its own of process 7."""
    sources = (
        Source(f"{name}.json", "kineto", host=host, pid=7, pass_name="torch") for name in "ab"
    )
    scene = Scene(sources=tuple(sources))
    for piece, at in enumerate((0, 500)):
        scene.op("aten::mm", at, at + 30, source=piece)
        scene.kernel(at + 10, at + 100, source=piece)
    return scene


def test_time_between_the_files_of_one_process_belongs_to_no_window():
    found = measured(_in_two_files().build())
    assert spans(found) == [(10, 100), (500, 600)]
    assert summarise_trace(_in_two_files().build(), "a").partition.idle_ns == 10


def test_time_between_files_of_nobodys_process_is_idle():
    assert spans(measured(_in_two_files(host="").build())) == [(10, 600)]


def test_a_process_with_one_file_fills_the_time_between_those_of_another():
    scene = _in_two_files()
    scene.sources = (*scene.sources, Source("b", "kineto", host="a", pid=8, pass_name="torch"))
    scene.op("aten::mm", 0, 600, source=2)
    assert spans(measured(scene.build())) == [(10, 600)]


def _two_processes(*at: int) -> Scene:
    """One file of two processes, each with a host call 50 ns before its device work of 90."""
    scene = Scene(sources=tuple(Source("a.db", "rocpd", host="n", pid=pid) for pid in (7, 8)))
    for source, begin in enumerate(at):
        scene.call("hipMalloc", begin, begin + 40, source=source)
        scene.kernel(begin + 50, begin + 140, source=source)
    return scene


def test_time_in_which_no_process_of_a_file_was_alive_belongs_to_no_window():
    assert spans(measured(_two_processes(0, 10**15).build())) == [
        (50, 140),
        (10**15 + 50, 10**15 + 140),
    ]
    assert spans(measured(_two_processes(10**15, 0).build())) == [
        (50, 140),
        (10**15 + 50, 10**15 + 140),
    ]
    assert summarise_trace(_two_processes(0, 10**15).build(), "a").partition.idle_ns == 0


def test_processes_of_a_file_that_ran_at_the_same_time_have_one_window():
    assert spans(measured(_two_processes(0, 130).build())) == [(50, 270)]
