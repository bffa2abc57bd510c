from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.records import IdleCauses
from profharness.analysis.time.idle import MICRO_GAP_NS, IdleAnalysis
from profharness.stats import intervals
from profharness.trace.model import Device, Ops, Source, Trace
from tests.analysis.scene import Scene


def causes(scene: Scene, low: int, high: int, device: int = 0) -> IdleCauses:
    return IdleAnalysis(scene.build()).causes(device, intervals.window(low, high))


def only(**parts: int) -> IdleCauses:
    """Causes as expected, all gaps short."""
    return IdleCauses(
        **{f"{name}_ns": ns for name, ns in parts.items()}, micro_ns=sum(parts.values())
    )


def opened(scene: Scene) -> Scene:
    """A kernel from 100 to 200, launched at 50, and host records from 0 to 1000."""
    scene.call("hipGetDevice", 0, 1)
    scene.kernel(100, 200, scene.launch(50, 60))
    scene.call("hipGetDevice", 999, 1000)
    return scene


def test_no_launching_call_is_no_host_record():
    scene = opened(Scene())
    scene.kernel(300, 400)
    assert causes(scene, 100, 400) == only(no_host_record=100)


def test_a_file_without_host_calls_has_no_host_record():
    scene = Scene()
    scene.kernel(0, 10)
    scene.kernel(15, 20)
    assert causes(scene, 0, 30) == only(no_host_record=5 + 10)


def test_time_before_the_first_host_record_is_no_host_record():
    scene = Scene()
    scene.kernel(0, 10)
    scene.call("hipGetDevice", 40, 41)
    scene.kernel(100, 110, scene.launch(70, 75))
    assert causes(scene, 0, 110) == only(
        no_host_record=30, host_not_ready=30, launch_in_progress=30
    )


def test_host_records_of_another_process_say_nothing_of_this_one():
    scene = Scene(sources=(Source("a.json", "kineto", pid=7), Source("b.json", "kineto", pid=8)))
    scene.kernel(0, 10)
    scene.call("hipGetDevice", 40, 41)
    scene.kernel(100, 110, scene.launch(70, 75))
    alone = causes(scene, 0, 110)
    assert alone == only(no_host_record=30, host_not_ready=30, launch_in_progress=30)
    others = Ops.build(
        start_ns=[2], dur_ns=[3], name=scene.strings.code("aten::mm"), pid=8, tid=1, source=1
    )  # one value for the whole column
    assert (
        IdleAnalysis(replace(scene.build(), ops=others)).causes(0, intervals.window(0, 110))
        == alone
    )
    scene.call("hipGetDevice", 0, 1, pid=8, source=1)
    assert causes(scene, 0, 110) == alone


def test_a_launch_that_had_returned_before_the_gap_is_a_queued_gap():
    scene = opened(Scene())
    scene.kernel(230, 300, scene.launch(150, 160))
    assert causes(scene, 100, 300) == only(queued_gap=30)


def test_graph_replay_gaps_are_queued():
    scene = opened(Scene())
    graph = scene.call("hipGraphLaunch", 100, 150)
    for start in (210, 230, 250):
        scene.kernel(start, start + 10, graph)
    assert causes(scene, 100, 260) == only(queued_gap=30)


def test_a_gap_is_split_where_the_launch_begins():
    scene = opened(Scene())
    scene.kernel(300, 400, scene.launch(240, 260))
    assert causes(scene, 100, 400) == only(host_not_ready=40, launch_in_progress=60)


def test_a_launch_that_returns_inside_the_gap_is_in_progress_to_its_end():
    scene = opened(Scene())
    scene.kernel(300, 400, scene.launch(190, 260))
    assert causes(scene, 100, 400) == only(launch_in_progress=100)


def test_synchronisation_of_the_launching_thread():
    scene = opened(Scene())
    scene.call("hipDeviceSynchronize", 150, 220)
    scene.call("hipDeviceSynchronize", 230, 290, tid=2)
    scene.kernel(300, 400, scene.launch(240, 245))
    assert causes(scene, 100, 400) == only(
        synchronisation=20, host_not_ready=20, launch_in_progress=60
    )


def test_a_copy_call_of_the_launching_thread_goes_before_synchronisation():
    scene = opened(Scene())
    scene.call("hipMemcpyWithStream", 190, 230)
    scene.call("hipStreamSynchronize", 220, 240)
    scene.kernel(300, 400, scene.launch(250, 251))
    assert causes(scene, 100, 400) == only(
        waiting_copy_or_event=30, synchronisation=10, host_not_ready=10, launch_in_progress=50
    )


def test_the_call_that_launches_a_copy_is_a_launch_and_not_a_wait():
    scene = opened(Scene())
    scene.copy(300, 310, scene.call("hipMemcpyAsync", 230, 240))
    assert causes(scene, 100, 310) == only(host_not_ready=30, launch_in_progress=70)


def test_an_event_wait_before_the_launch():
    scene = opened(Scene())
    scene.call("hipStreamWaitEvent", 150, 152)
    scene.kernel(300, 310, scene.launch(160, 170))
    scene.kernel(320, 330, scene.launch(180, 185))
    assert causes(scene, 100, 330) == only(waiting_copy_or_event=100, queued_gap=10)


def test_an_event_wait_counts_for_the_first_kernel_of_a_graph_only():
    scene = opened(Scene())
    scene.call("hipStreamWaitEvent", 150, 152)
    graph = scene.call("hipGraphLaunch", 160, 170)
    scene.kernel(250, 260, graph)
    scene.kernel(270, 280, graph)
    assert causes(scene, 100, 280) == only(waiting_copy_or_event=50, queued_gap=10)


def test_an_event_wait_of_another_thread_does_not_count():
    scene = opened(Scene())
    scene.call("hipStreamWaitEvent", 150, 152, tid=2)
    scene.kernel(300, 310, scene.launch(160, 170))
    assert causes(scene, 100, 310) == only(queued_gap=100)


def test_a_copy_that_another_device_runs_for_this_one():
    scene = opened(Scene(devices=(Device("0"), Device("1"))))
    scene.copy(220, 250, device=1, src=1, dst=0)
    scene.copy(250, 260, device=1, src=1, dst=1)
    scene.kernel(300, 310, scene.launch(160, 170))
    assert causes(scene, 100, 310) == only(waiting_copy_or_event=30, queued_gap=70)


def test_after_the_last_kernel_the_launching_threads_are_asked():
    scene = opened(Scene())
    scene.call("hipDeviceSynchronize", 190, 250)
    assert causes(scene, 100, 1100) == only(
        synchronisation=50, host_not_ready=750, no_host_record=100
    )


def test_a_kernel_that_starts_before_its_launch_is_split_without_negative_parts():
    scene = opened(Scene())
    scene.kernel(220, 300, scene.launch(260, 270))
    assert causes(scene, 100, 300) == only(host_not_ready=20)


def test_short_and_long_gaps_go_by_the_whole_gap():
    scene = Scene()
    scene.kernel(0, 10)
    scene.kernel(10 + MICRO_GAP_NS, 20 + MICRO_GAP_NS)
    scene.kernel(19 + 2 * MICRO_GAP_NS, 30 + 2 * MICRO_GAP_NS)
    found = causes(scene, 0, 30 + 2 * MICRO_GAP_NS)
    assert (found.macro_ns, found.micro_ns) == (MICRO_GAP_NS, MICRO_GAP_NS - 1)
    cut = causes(scene, 0, 50)
    assert (cut.macro_ns, cut.micro_ns) == (40, 0)


def test_windows_may_be_several():
    scene = opened(Scene())
    scene.kernel(300, 400, scene.launch(240, 260))
    windows = intervals.merge(intervals.of([190, 235, 290], [210, 250, 310]))
    assert IdleAnalysis(scene.build()).causes(0, windows) == only(
        host_not_ready=10 + 5, launch_in_progress=10 + 10
    )


def test_a_device_without_work_in_the_trace():
    scene = opened(Scene(devices=(Device("0"), Device("1"))))
    found = causes(scene, 0, 50, device=1)
    assert found.no_host_record_ns == 50


def test_no_window():
    assert IdleAnalysis(opened(Scene()).build()).causes(0, intervals.EMPTY) == IdleCauses()


LENGTH = 120
DURATION = st.integers(1, 12)


@st.composite
def scenes(draw) -> Scene:
    """Kernels on two streams, launched by two threads between synchronisation, copy calls and event
    waits.
    """
    scene = Scene()
    at = {1: draw(st.integers(0, 5)), 2: draw(st.integers(0, 5))}
    free = draw(st.integers(0, 10))
    for _ in range(draw(st.integers(0, 9))):
        thread = draw(st.sampled_from([1, 2]))
        name = draw(
            st.sampled_from(
                [
                    "hipLaunchKernel",
                    "hipGraphLaunch",
                    "hipStreamSynchronize",
                    "hipMemcpyWithStream",
                    "hipStreamWaitEvent",
                    "hipGetDevice",
                    "lost",
                ]
            )
        )
        start = at[thread] + draw(st.integers(0, 6))
        end = start + draw(DURATION)
        at[thread] = end
        call = -1 if name == "lost" else scene.call(name, start, end, tid=thread)
        pieces = {
            "hipLaunchKernel": 1,
            "hipGraphLaunch": 2,
            "lost": 1,
            "hipMemcpyWithStream": draw(st.integers(0, 1)),
        }.get(name, 0)
        for _ in range(pieces):
            begin = max(free + draw(st.integers(-3, 9)), 0)
            free = begin + draw(DURATION)
            add = scene.copy if name == "hipMemcpyWithStream" else scene.kernel
            add(begin, free, call, stream=draw(st.integers(0, 1)))
    return scene


def oracle(trace: Trace, low: int, high: int) -> Counter[str]:
    """One ns at a time, by the words of the module's docstring."""
    found: Counter[str] = Counter()
    api, strings = trace.api, trace.strings
    calls = [
        (
            int(api.start_ns[row]),
            int(api.start_ns[row] + api.dur_ns[row]),
            strings[int(api.name[row])],
            int(api.tid[row]),
            int(api.correlation[row]),
        )
        for row in range(len(api))
    ]
    by_id = {call[4]: number for number, call in enumerate(calls)}
    work = []
    for table in (trace.kernels, trace.copies):
        work += [
            (
                int(table.start_ns[row]),
                int(table.start_ns[row] + table.dur_ns[row]),
                by_id.get(int(table.correlation[row])),
            )
            for row in range(len(table))
        ]
    reach = (min(call[0] for call in calls), max(call[1] for call in calls)) if calls else (0, 0)
    threads = {calls[number][3] for _, _, number in work if number is not None} or {1, 2}

    def inside(instant: int, words: str, of_threads: set[int]) -> bool:
        return any(
            start <= instant < end and words in name and tid in of_threads
            for start, end, name, tid, _ in calls
        )

    for instant in range(low, high):
        if any(start <= instant < end for start, end, _ in work):
            continue
        later = [item for item in work if item[0] > instant]
        gap_start = max(
            (end for start, end, _ in work if end <= instant),
            default=min([low, *(item[0] for item in work)]),
        )
        if later:
            start = min(item[0] for item in later)
            call = min(
                (item[2] for item in later if item[0] == start),
                key=lambda number: len(calls) if number is None else number,
            )
            if call is None:
                found["no_host_record"] += 1
                continue
            began, returned, _, thread, _ = calls[call]
            if instant >= began:
                first = start == min(item[0] for item in work if item[2] == call)
                earlier = [
                    other
                    for other in calls
                    if other[3] == thread
                    and other[0] < began
                    and (
                        "WaitEvent" in other[2] or any(item[2] == by_id[other[4]] for item in work)
                    )
                ]
                waited = first and bool(earlier) and "WaitEvent" in max(earlier)[2]
                found[
                    "waiting_copy_or_event"
                    if waited
                    else "queued_gap"
                    if returned <= gap_start
                    else "launch_in_progress"
                ] += 1
                continue
            asked = {thread}
        else:
            asked = threads
        if not reach[0] <= instant < reach[1]:
            found["no_host_record"] += 1
        elif inside(instant, "Memcpy", asked):
            found["waiting_copy_or_event"] += 1
        elif inside(instant, "Synchronize", asked):
            found["synchronisation"] += 1
        else:
            found["host_not_ready"] += 1
    return found


@settings(max_examples=150)
@given(scenes(), st.integers(0, LENGTH // 2), st.integers(0, LENGTH))
def test_causes_equal_an_oracle_that_looks_at_every_ns(scene, low, length):
    trace = scene.build()
    if not len(trace.kernels) + len(trace.copies):
        return
    found = IdleAnalysis(trace).causes(0, intervals.window(low, low + length))
    expected = oracle(trace, low, low + length)
    got = {
        name.removesuffix("_ns"): getattr(found, name) for name in IdleCauses.__struct_fields__[:6]
    }
    assert {name: ns for name, ns in got.items() if ns} == dict(expected)
    busy = intervals.merge(
        intervals.lasting(
            np.concatenate((trace.kernels.start_ns, trace.copies.start_ns)),
            np.concatenate((trace.kernels.dur_ns, trace.copies.dur_ns)),
        )
    )
    idle = length - intervals.clip(busy, low, low + length).total
    assert sum(got.values()) == idle == found.micro_ns + found.macro_ns


def test_three_hundred_thousand_gaps_are_attributed_without_a_loop_per_gap():
    from profharness.trace.model import Api, Kernels, Source, Strings

    rows = 300_000
    strings = Strings(["k", "hipLaunchKernel"])
    start = np.arange(rows, dtype=np.int64) * 1000
    trace = Trace(
        sources=(Source("a", "kineto"),),
        strings=strings,
        devices=(Device("0"),),
        kernels=Kernels.build(
            start_ns=start,
            dur_ns=600,
            name=0,
            device=0,
            stream=0,
            source=0,
            correlation=np.arange(rows),
        ),
        api=Api.build(
            start_ns=start - 300,
            dur_ns=100,
            name=1,
            pid=1,
            tid=1,
            source=0,
            correlation=np.arange(rows),
        ),
    )
    found = IdleAnalysis(trace).causes(0, intervals.window(0, rows * 1000))
    assert found.launch_in_progress_ns == (rows - 1) * 300
    assert found.micro_ns + found.macro_ns == rows * 400
