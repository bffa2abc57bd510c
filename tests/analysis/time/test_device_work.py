from __future__ import annotations

import numpy as np

from profharness.analysis.time.device_work import backlogged_streams, delays, queued_ns, work_of
from profharness.analysis.time.launching import BETWEEN_LAUNCHES_NS, host_launching, launch_bound_ns
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.model import Device
from tests.analysis.scene import Scene


def queue() -> Scene:
    """On one stream: a kernel that met an empty queue, one queued behind it, one after it; another
    stream; one without launch.
    """
    scene = Scene()
    scene.kernel(20, 50, scene.launch(0, 5))
    scene.kernel(50, 60, scene.launch(10, 15))
    scene.kernel(80, 90, scene.launch(60, 65))
    scene.kernel(40, 45, scene.launch(30, 35), stream=1)
    scene.kernel(100, 120, stream=1)
    scene.kernel(125, 130, scene.launch(110, 115), stream=1)
    return scene


def test_launch_latency_is_for_kernels_that_met_an_empty_queue():
    trace = queue().build()
    found = delays(trace, work_of(trace))
    assert found.kernel.tolist() == [0, 1, 2, 3, 5]
    assert found.delay.tolist() == [20, 40, 20, 10, 15]
    assert found.met_empty.tolist() == [True, False, True, True, False]


def test_copies_and_earlier_graph_kernels_fill_the_queue():
    scene = Scene()
    scene.copy(10, 100, scene.call("hipMemcpyAsync", 0, 5))
    graph = scene.call("hipGraphLaunch", 20, 30)
    scene.kernel(100, 110, graph)
    scene.kernel(112, 120, graph)
    scene.kernel(220, 230, scene.launch(200, 205))
    trace = scene.build()
    assert delays(trace, work_of(trace)).met_empty.tolist() == [False, False, True]


def test_negative_delays_are_kept_as_they_are():
    scene = Scene()
    scene.kernel(10, 20, scene.launch(15, 16))
    trace = scene.build()
    assert delays(trace, work_of(trace)).delay.tolist() == [-5]


def test_queue_depth_counts_launched_and_unfinished():
    work = work_of(queue().build())
    expected = np.zeros(140, int)
    for start, end in ((0, 50), (10, 60), (60, 90), (30, 45), (100, 120), (110, 130)):
        expected[start:end] += 1
    assert [
        queued_ns(work, Windows(intervals.window(at, at + 1), "")) for at in range(140)
    ] == expected.tolist()
    assert (
        queued_ns(work, Windows(intervals.of([5, 40], [12, 115]), ""))
        == expected[5:12].sum() + expected[40:115].sum()
    )


def test_work_whose_launch_is_missing_is_queued_while_it_runs():
    scene = Scene()
    for start in range(0, 100, 10):
        scene.kernel(start, start + 10)
    assert [
        queued_ns(work_of(scene.build()), Windows(intervals.window(at, at + 1), ""))
        for at in range(110)
    ] == [1] * 100 + [0] * 10


def test_backlogged_streams():
    trace = queue().build()
    steps = backlogged_streams(work_of(trace), 0)
    assert steps.at([5, 35, 47, 55, 95, 112]).tolist() == [1, 2, 1, 1, 0, 1]


def bound(scene: Scene, low: int, high: int) -> int:
    trace = scene.build()
    return launch_bound_ns(
        work_of(trace), 0, intervals.window(low, high), host_launching(trace, work_of(trace), 0)
    )


def test_a_host_that_launches_one_short_kernel_at_a_time_is_launch_bound():
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.kernel(start + 60, start + 70, scene.launch(start, start + 50))
    assert bound(scene, 0, 950) == 950


def test_a_host_that_runs_ahead_is_not():
    scene = Scene()
    for number in range(10):
        scene.kernel(
            100 + 50 * number, 150 + 50 * number, scene.launch(10 * number, 10 * number + 5)
        )
    # from the return of the second launch there is always more queued than what runs next
    assert bound(scene, 15, 600) == 0
    assert bound(scene, 0, 15) == 15


def test_a_queued_gap_is_not_launch_bound():
    scene = Scene()
    calls = [scene.launch(start, start + 5) for start in range(0, 200, 10)]
    for number, call in enumerate(calls):
        scene.kernel(300 + 20 * number, 310 + 20 * number, call)
    assert bound(scene, 100, 200) == 0


def test_waiting_and_long_pauses_of_the_host_are_not_launching():
    scene = Scene()
    scene.launch(0, 10)
    scene.kernel(20, 30, scene.launch(20, 25))
    scene.call("hipDeviceSynchronize", 30, 60)
    scene.call("hipMemcpyWithStream", 60, 70)
    last = 80 + BETWEEN_LAUNCHES_NS
    scene.kernel(last + 200, last + 300, scene.launch(80, 90))
    scene.launch(last + 100, last + 110)
    trace = scene.build()
    found = host_launching(trace, work_of(trace), 0)
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [
        (0, 30),
        (70, 90),
        (last + 100, last + 110),
    ]


def test_a_device_that_nobody_launched_on_is_not_launch_bound():
    scene = Scene(devices=(Device("0"), Device("1")))
    scene.kernel(20, 30, scene.launch(0, 10))
    scene.kernel(0, 10, device=1)
    trace = scene.build()
    assert (
        launch_bound_ns(
            work_of(trace), 1, intervals.window(0, 100), host_launching(trace, work_of(trace), 1)
        )
        == 0
    )
