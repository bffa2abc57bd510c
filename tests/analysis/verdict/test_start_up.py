"""Start-up: which calls are it, where the repeated work begins, and that it is named as no limit."""

from __future__ import annotations

import pytest

from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.summary import critical_path
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.start_up import (
    begin_after_start_up,
    repeated_work,
    start_up_calls,
)
from profharness.analysis.time.steps import measured
from profharness.analysis.verdict import start_up
from profharness.report.text.sentences import next_step
from profharness.trace.model import Device, Source
from tests.analysis.scene import Scene

US, MS = 1_000, 1_000_000
ROUND = ("embed", "gemm", "softmax")


def rounds(scene: Scene, count: int, at: int) -> int:
    """Rounds of three kernels of 20 µs, each launched 5 µs before it starts; where they end."""
    for _ in range(count):
        for name in ROUND:
            scene.kernel(at + 5 * US, at + 25 * US, scene.launch(at, at + 3 * US), name=name)
            at += 30 * US
    return at


def begun(first_launch_ns: int, count: int = 10) -> Scene:
    """A kernel that fills a buffer, then one whose first launch takes so long, then the rounds."""
    scene = Scene()
    scene.kernel(5 * US, 10 * US, scene.launch(0, 3 * US), name="fill")
    launched = 20 * US
    end = launched + first_launch_ns
    scene.kernel(end + US, end + 5 * US, scene.launch(launched, end), name="warm")
    rounds(scene, count, end + 10 * US)
    return scene


def names(scene: Scene) -> list[str]:
    trace = scene.build()
    return [trace.strings[int(trace.api.name[row])] for row in start_up_calls(trace)]


def test_a_first_launch_before_the_repeated_work_is_left_out():
    trace = begun(7 * MS).build()
    begin = 20 * US + 7 * MS + 15 * US  # the first kernel of the first round
    assert repeated_work(trace) == begin == begin_after_start_up(trace)
    window = measured(trace)
    assert (int(window.when.start[0]), window.label) == (begin, "all device work after start-up")
    summary = summarise_trace(trace, "made up")
    (told,) = [one for one in summary.findings if one.id == "start-up"]
    assert (told.severity, told.figures) == ("info", {"left_out_ns": 7 * MS})
    assert "one hipLaunchKernel of 7.000 ms" in told.message
    assert summary.partition is not None
    assert summary.partition.window_ns == 30 * 30 * US - 10 * US
    assert summary.partition.compute_ns == 30 * 20 * US


def test_the_path_and_its_forecasts_begin_behind_it():
    made = critical_path(begun(7 * MS).build())
    assert made is not None
    (process,) = made.processes
    assert process.window_ns < MS


def test_a_short_first_launch_is_not_worth_a_word():
    trace = begun(30 * US, 100).build()
    assert begin_after_start_up(trace) is None
    assert measured(trace).label == "all device work"
    summary = summarise_trace(trace, "made up")
    assert "start-up" not in {one.id for one in summary.findings}
    assert summary.verdict is not None


def test_a_first_launch_inside_of_the_window_is_no_limit():
    """Nothing comes again, or it comes after work that did: it is named, and left where it is."""
    scene = Scene()
    end = rounds(scene, 10, 0)
    scene.kernel(
        end + 6 * MS + US, end + 6 * MS + 9 * US, scene.launch(end, end + 6 * MS), name="x"
    )
    rounds(scene, 10, end + 7 * MS)
    trace = scene.build()
    assert begin_after_start_up(trace) is None
    summary = summarise_trace(trace, "made up")
    (told,) = [one for one in summary.findings if one.id == "start-up"]
    assert told.severity == "warning"
    assert told.figures["start_up_ns"] == 6 * MS
    assert summary.verdict is None
    assert "warm-up" in summary.verdict_needs
    assert "one hipLaunchKernel of 6.000 ms" in summary.verdict_needs
    assert "Try" not in next_step(summary)


def test_graphs_shorten_no_start_up():
    scene = Scene()
    end = rounds(scene, 10, 0)
    scene.kernel(
        end + 6 * MS + US, end + 6 * MS + 9 * US, scene.launch(end, end + 6 * MS), name="x"
    )
    rounds(scene, 10, end + 7 * MS)
    made = critical_path(scene.build(), (parse("graphs"),))
    assert made is not None
    (graphs,) = [one for one in made.processes[0].what_if if one.change == "graphs"]
    assert graphs.forecast_ns >= 6 * MS
    assert graphs.at_most_ns is not None
    assert graphs.window_ns - graphs.at_most_ns >= 6 * MS


def test_a_launch_that_waits_for_room_in_the_queue_is_none():
    """The device works all the while: nothing is lost."""
    scene = Scene()
    rounds(scene, 10, 0)
    scene.kernel(900 * US, 9 * MS, scene.launch(890 * US, 895 * US), name="long")
    scene.kernel(9 * MS, 9 * MS + 20 * US, scene.launch(900 * US, 8 * MS), name="behind")
    summary = summarise_trace(scene.build(), "made up")
    assert "start-up" not in {one.id for one in summary.findings}


def test_many_long_launches_of_known_kernels_are_a_cost_of_launching():
    scene = Scene()
    at = rounds(scene, 100, 0)
    for _ in range(3):
        scene.kernel(at + 3 * MS, at + 4 * MS, scene.launch(at, at + 3 * MS), name="gemm")
        at += 5 * MS
    assert names(scene) == []


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_are_start_up(count: int):
    scene = Scene()
    at = rounds(scene, 100, 0)
    for _ in range(count):
        scene.kernel(at + 3 * MS, at + 4 * MS, scene.launch(at, at + 3 * MS), name="gemm")
        at += 5 * MS
    assert names(scene) == ["hipLaunchKernel"] * count


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cudaFree", 1),
        ("hipMalloc", 1),
        ("hipHostMalloc", 1),
        ("hipStreamCreateWithPriority", 1),
        ("cudaEventCreateWithFlags", 1),
        ("rocblas_create_handle", 1),
        ("cublasCreate_v2", 1),
        ("hipModuleLoadData", 3),
        ("cuLibraryLoadData", 3),
        ("cudaDeviceSynchronize", 0),
        ("hipMemcpyWithStream", 0),
        ("cudaStreamWaitEvent", 0),
    ],
)
def test_calls_that_create_count_once_and_those_that_load_each_time(name: str, counted: int):
    scene = Scene()
    at = 0
    for _ in range(3):
        scene.call(name, at, at + MS)
        at += 2 * MS
    rounds(scene, 3, at)
    assert names(scene) == [name] * counted


def test_start_up_of_one_process_is_not_held_against_the_device_of_another():
    scene = Scene(
        sources=(Source("a.json", "kineto", pid=7), Source("b.json", "kineto", pid=8)),
        devices=(Device("0", vendor="AMD"), Device("1", vendor="AMD")),
    )
    rounds(scene, 10, 0)
    scene.call("hipMalloc", 0, 900 * US, pid=8, source=1)
    scene.kernel(0, US, name="other", device=1, source=1)
    scene.kernel(899 * US, 900 * US, name="other", device=1, source=1)
    (told,) = [one for one in summarise_trace(scene.build(), "x").findings if one.id == "start-up"]
    assert told.figures["start_up_ns"] == 898 * US


def test_the_start_up_of_several_devices_is_told_as_long_as_it_took():
    scene = Scene(devices=(Device("0"), Device("1")))
    for device in (0, 1):
        end = 0
        for at in (0, 7 * MS):
            end = at + 5 * US
            for number in range(30):
                begin = end + number * 20 * US
                launch = scene.launch(begin - 5 * US, begin - 4 * US)
                scene.kernel(
                    begin,
                    begin + 19 * US,
                    launch,
                    name=ROUND[number % 3],
                    device=device,
                    stream=device,
                )
    scene.call("hipModuleLoad", 700 * US, 6_700 * US)
    summary = summarise_trace(scene.build(), "made up")
    (told,) = [one for one in summary.findings if one.id == "start-up"]
    assert told.figures["start_up_ns"] == 2 * 6 * MS
    assert "for 6.000 ms each of 2 devices, in the mean, had nothing to do" in told.message


def test_what_may_be_unrecorded_work_is_no_start_up():
    """The kernel behind the loading was launched before it, and begins when it is over."""
    scene = Scene()
    end = rounds(scene, 10, 0)
    late = scene.launch(end - 10 * US, end - 9 * US)
    scene.call("hipModuleLoad", end + 100 * US, end + 6 * MS)
    scene.kernel(end + 6 * MS, end + 7 * MS, late, name="late")
    rounds(scene, 10, end + 7 * MS)
    summary = summarise_trace(scene.build(), "made up")
    split = summary.partition
    assert split is not None
    assert split.idle_or_not_recorded_ns > 4 * MS
    assert "start-up" not in {one.id for one in summary.findings}


def test_start_up_is_looked_for_once(monkeypatch: pytest.MonkeyPatch):
    asked = []
    real = start_up.calls_of_device
    monkeypatch.setattr(
        start_up, "calls_of_device", lambda *args: asked.append(args[1]) or real(*args)
    )
    scene = Scene()
    end = rounds(scene, 10, 0)
    scene.call("hipModuleLoad", end, end + 6 * MS)
    rounds(scene, 10, end + 7 * MS)
    summarise_trace(scene.build(), "made up")
    assert asked == [0]
