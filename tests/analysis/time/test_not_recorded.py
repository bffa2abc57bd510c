"""When unrecorded work may have run on a device that shows none: one small scene per rule."""

from __future__ import annotations

import pytest

from profharness.analysis.records import Partition
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.idle_spans import idle_spans
from profharness.analysis.time.timeline import partition_windows
from profharness.stats import intervals
from profharness.trace.model import Device
from tests.analysis.scene import Scene

US, MS = 1_000, 1_000_000
TWO = (Device("0"), Device("1"))


def split(scene: Scene, low: int, high: int, device: int = 0) -> Partition:
    """The partition of [low, high), whose parts must sum to it, and agree with the spans."""
    trace, windows = scene.build(), intervals.window(low, high)
    known = IdleAnalysis(trace)
    found = partition_windows(trace, windows, (device,), known)
    spans = idle_spans(known, device, windows)
    assert spans.pop("idle_or_not_recorded_ns").total == found.idle_or_not_recorded_ns
    assert found.idle_causes is not None
    assert sum(held.total for held in spans.values()) == found.idle_ns
    assert found.idle_causes.micro_ns + found.idle_causes.macro_ns == found.idle_ns
    return found


def begun() -> Scene:
    """A kernel that ends at 1 ms, by a launch at 900 µs."""
    scene = Scene(devices=TWO)
    scene.kernel(950 * US, 1 * MS, scene.launch(900 * US, 910 * US))
    return scene


def test_a_launched_kernel_that_begins_late_leaves_the_time_before_it_open():
    scene = begun()
    scene.kernel(400 * MS, 401 * MS, scene.launch(3 * MS, 4 * MS))
    found = split(scene, 1 * MS, 401 * MS)
    # 1 ms is the usual start latency where fewer than 20 starts on an empty device were seen
    assert found.idle_or_not_recorded_ns == (400 - 5) * MS
    assert found.idle_causes is not None
    assert found.idle_causes.host_not_ready_ns == 2 * MS
    assert found.idle_causes.launch_in_progress_ns == 2 * MS


def test_a_queued_kernel_that_follows_nothing_leaves_the_whole_gap_open():
    scene = begun()
    scene.launch(905 * US, 908 * US)
    early = scene.launch(910 * US, 920 * US)
    scene.kernel(9 * MS, 10 * MS, early)
    found = split(scene, 950 * US, 10 * MS)
    assert found.idle_or_not_recorded_ns == 9 * MS - (920 * US + 1 * MS)
    # launched more than the usual latency before the gap, all of it is open
    scene = begun()
    early = scene.launch(100 * US, 110 * US)
    scene.kernel(1120 * US, 1200 * US, scene.launch(980 * US, 985 * US))
    scene.kernel(9 * MS, 10 * MS, early)
    assert split(scene, 1200 * US, 10 * MS).idle_or_not_recorded_ns == 9 * MS - 1200 * US


@pytest.mark.parametrize(("pause", "open_ns"), [(20 * US, 0), (21 * US, 21 * US)])
def test_a_short_pause_before_queued_work_is_usual(pause, open_ns):
    scene = Scene()
    first, second = scene.launch(0, 5 * US), scene.launch(6 * US, 10 * US)
    scene.kernel(20 * US, 5 * MS, first)
    scene.kernel(5 * MS + pause, 6 * MS, second)
    found = split(scene, 20 * US, 6 * MS)
    assert (found.idle_ns, found.idle_or_not_recorded_ns) == (pause - open_ns, open_ns)


def measured_starts(latency: int, *, count: int = 20, call: str = "hipLaunchKernel") -> Scene:
    """As many kernels, each launched on an empty device and begun `latency` after the return."""
    scene = Scene()
    for number in range(count):
        at = number * MS
        by = scene.call(call, at, at + 10 * US)
        scene.kernel(at + 10 * US + latency, at + 500 * US, by)
    return scene


def test_the_usual_start_latency_is_measured_where_twenty_starts_were_seen():
    # the first start of a recording tells nothing, and the late one is seen too
    for count, open_ns in ((19, 0), (20, 300 * US - 30 * US)):
        scene = measured_starts(30 * US, count=count)
        at = count * MS
        scene.kernel(at + 310 * US, at + 400 * US, scene.launch(at, at + 10 * US))
        assert split(scene, at, at + 400 * US).idle_or_not_recorded_ns == open_ns


def test_latencies_are_measured_for_kernels_graphs_and_copies_apart():
    scene = measured_starts(30 * US, count=30)
    at = 30 * MS
    scene.kernel(at + 310 * US, at + 400 * US, scene.call("hipGraphLaunch", at, at + 10 * US))
    assert split(scene, at, at + 400 * US).idle_or_not_recorded_ns == 0
    scene = measured_starts(30 * US, count=30)
    scene.copy(at + 310 * US, at + 400 * US, scene.call("hipMemcpyAsync", at, at + 10 * US))
    assert split(scene, at, at + 400 * US).idle_or_not_recorded_ns == 0
    scene = measured_starts(30 * US, count=30, call="hipGraphLaunch")
    scene.kernel(at + 310 * US, at + 400 * US, scene.call("hipGraphLaunch", at, at + 10 * US))
    assert split(scene, at, at + 400 * US).idle_or_not_recorded_ns == 270 * US


def test_starts_that_are_late_in_many_steps_do_not_become_usual():
    scene = Scene()
    for number in range(40):
        at = number * 10 * MS
        scene.kernel(at + 5 * MS, at + 9 * MS, scene.launch(at, at + 10 * US))
    found = split(scene, 10 * MS, 400 * MS)
    assert found.idle_or_not_recorded_ns == 39 * (5 * MS - 10 * US - 1 * MS)


def test_nothing_is_open_before_work_whose_launch_is_not_known():
    scene = begun()
    scene.kernel(400 * MS, 401 * MS)
    found = split(scene, 1 * MS, 401 * MS)
    assert found.idle_or_not_recorded_ns == 0
    assert found.idle_causes is not None
    assert found.idle_causes.no_host_record_ns == 399 * MS


def test_the_first_kernel_of_a_recording_may_have_waited_for_the_work_before():
    scene = Scene()
    scene.kernel(50 * MS, 60 * MS, scene.launch(0, 10 * US))
    assert split(scene, 0, 60 * MS).idle_or_not_recorded_ns == 49 * MS - 10 * US


def test_a_wait_for_an_event_explains_only_what_recorded_work_ended():
    def waiting(end_elsewhere: int) -> Partition:
        scene = begun()
        scene.kernel(2 * MS, end_elsewhere, scene.launch(1 * MS, 1010 * US), device=1)
        scene.call("hipStreamWaitEvent", 1100 * US, 1101 * US)
        scene.kernel(50 * MS, 51 * MS, scene.launch(1200 * US, 1210 * US))
        return split(scene, 1 * MS, 51 * MS)

    explained = waiting(50 * MS - 10 * US)
    assert explained.idle_or_not_recorded_ns == 0
    assert explained.idle_causes is not None
    assert explained.idle_causes.waiting_copy_or_event_ns == 50 * MS - 1200 * US
    assert waiting(50 * MS - 11 * US).idle_or_not_recorded_ns == 50 * MS - 2210 * US


@pytest.mark.parametrize("call", ["hipLaunchHostFunc", "cudaStreamAddCallback_ptsz"])
def test_a_function_of_the_host_explains_the_wait_of_what_was_launched_behind_it(call):
    def waiting(scene: Scene) -> Partition:
        scene.call(call, 1100 * US, 1101 * US)
        scene.kernel(50 * MS, 51 * MS, scene.launch(1200 * US, 1210 * US))
        scene.kernel(90 * MS, 91 * MS, scene.launch(1220 * US, 1230 * US))
        return split(scene, 1 * MS, 91 * MS)

    found = waiting(begun())
    assert found.idle_or_not_recorded_ns == (90 - 51) * MS
    assert found.idle_causes is not None
    assert found.idle_causes.waiting_copy_or_event_ns == 50 * MS - 1200 * US
    # nothing recorded can have let it begin
    assert waiting(Scene(devices=TWO)).idle_or_not_recorded_ns == (50 + 39) * MS - 2210 * US


def test_a_copy_by_another_device_is_recorded_work_for_this_one():
    scene = begun()
    scene.copy(10 * MS, 30 * MS, device=1, src=1, dst=0)
    scene.kernel(50 * MS, 51 * MS, scene.launch(1200 * US, 1210 * US))
    found = split(scene, 1 * MS, 51 * MS)
    assert found.idle_or_not_recorded_ns == 50 * MS - 2210 * US - 20 * MS
    assert found.idle_causes is not None
    assert found.idle_causes.waiting_copy_or_event_ns == 20 * MS


@pytest.mark.parametrize(("past", "is_open"), [(100 * US, False), (101 * US, True)])
def test_a_synchronising_call_that_goes_on_waits_for_something(past, is_open):
    scene = begun()
    scene.call("hipDeviceSynchronize", 920 * US, 1 * MS + past)
    scene.call("hipGetDevice", 9 * MS, 9 * MS + 1)
    found = split(scene, 950 * US, 9 * MS)
    assert found.idle_or_not_recorded_ns == (past if is_open else 0)
    assert found.idle_causes is not None
    assert found.idle_causes.synchronisation_ns == (0 if is_open else past)


def test_a_call_on_a_device_that_had_run_dry_is_open_from_its_own_begin():
    scene = begun()
    scene.call("hipStreamSynchronize", 5 * MS, 8 * MS)
    scene.call("hipGetDevice", 9 * MS, 9 * MS + 1)
    assert split(scene, 950 * US, 9 * MS).idle_or_not_recorded_ns == 3 * MS


def test_work_of_another_device_explains_a_synchronising_call():
    scene = begun()
    scene.kernel(2 * MS, 8 * MS, scene.launch(1100 * US, 1110 * US), device=1)
    scene.call("hipDeviceSynchronize", 1200 * US, 8050 * US)
    found = split(scene, 950 * US, 8050 * US)
    assert found.idle_or_not_recorded_ns == 0
    assert found.idle_causes is not None
    assert found.idle_causes.synchronisation_ns == 6850 * US


def test_calls_of_threads_that_launch_nothing_say_nothing():
    scene = begun()
    scene.call("hipDeviceSynchronize", 5 * MS, 8 * MS, tid=2)
    scene.call("hsa_signal_wait_scacquire", 5 * MS, 8 * MS)
    scene.call("hipGetDevice", 9 * MS, 9 * MS + 1)
    assert split(scene, 950 * US, 9 * MS).idle_or_not_recorded_ns == 0


def test_recorded_work_is_never_open():
    scene = begun()
    scene.call("hipDeviceSynchronize", 2 * MS, 9 * MS)
    scene.kernel(4 * MS, 5 * MS, scene.launch(3 * MS, 3010 * US, tid=2))
    found = split(scene, 950 * US, 9 * MS)
    # after the kernel of the other thread the call goes on for 4 ms
    assert found.idle_or_not_recorded_ns == 4 * MS
    assert found.compute_ns == 50 * US + 1 * MS
