from __future__ import annotations

import pytest

from profharness.analysis.verdict.integrity import findings, from_problems
from profharness.findings import Finding
from profharness.trace.model import Device, Problem, Source, Strings, Trace
from profharness.trace.statistics import KERNELS, StatRow
from tests.analysis.scene import Scene


def found(scene: Scene) -> dict[str, Finding]:
    return {item.id: item for item in findings(scene.build())}


def healthy() -> Scene:
    scene = Scene()
    for number in range(200):
        scene.kernel(
            100 * number + 50, 100 * number + 90, scene.launch(100 * number, 100 * number + 5)
        )
    return scene


def test_a_complete_trace_has_no_findings():
    scene = healthy()
    for number in range(10):
        scene.mark("step", 2000 * number, 2000 * (number + 1))
    assert found(scene) == {}


def test_empty_trace():
    assert [
        item.id for item in findings(Trace(sources=(Source("e", "kineto"),), strings=Strings()))
    ] == ["empty-trace"]


def test_operators_alone_are_no_empty_trace_but_launches_without_kernels_are():
    scene = Scene()
    scene.op("aten::mm", 0, 10)
    assert found(scene) == {}
    scene.launch(1, 2)
    result = found(scene)
    assert result["empty-trace"].figures == {"launches": 1, "host_calls": 1, "operators": 1}
    assert result["kernels-missing"].severity == "error"


def test_launches_that_lost_their_kernels():
    scene = healthy()
    for start in (310, 1210, 2210):
        scene.launch(start, start + 5)
    item = found(scene)["kernels-missing"]
    assert (item.severity, item.figures["missing"], item.figures["launches"]) == ("error", 3, 203)
    few = healthy()
    few.launch(310, 315)
    assert found(few)["kernels-missing"].severity == "warning"


def test_kernels_beyond_the_end_of_the_file_are_not_missing():
    scene = healthy()
    scene.launch(20_001, 20_005)
    assert found(scene) == {}


def test_launches_into_a_graph_being_captured_run_no_kernel():
    scene = healthy()
    scene.call("hipStreamBeginCapture", 300, 301)
    for start in (310, 320, 330):
        scene.launch(start, start + 5)
    scene.call("hipStreamEndCapture", 340, 341)
    assert found(scene) == {}
    scene.launch(345, 347)
    assert found(scene)["kernels-missing"].figures["missing"] == 1


def test_a_driver_call_with_the_id_of_the_runtime_call_is_not_missing():
    scene = healthy()
    correlation = scene.call("cudaLaunchKernel", 20_000, 20_010)
    scene.call("cuLaunchKernel", 20_002, 20_008, correlation=correlation)
    scene.kernel(20_050, 20_060, correlation)
    scene.kernel(20_150, 20_160, scene.launch(20_100, 20_105))
    assert found(scene) == {}


def test_kernels_that_carry_no_usable_id_accuse_no_launch():
    scene = Scene()
    scene.launch(0, 5)
    scene.kernel(10, 20)
    assert list(found(scene)) == ["launches-missing"]


def test_kernels_without_an_id_are_those_of_launches_without_a_kernel():
    """Older RCCL carries no ids under roctracer: nothing is missing."""
    scene = healthy()
    for number in range(20):
        scene.launch(1000 * number + 11, 1000 * number + 13)
        scene.kernel(1000 * number + 20, 1000 * number + 60, name="ncclDevKernel", stream=1, pid=7)
    item = found(scene)["launches-missing"]
    assert (item.figures["unlinked"], item.figures["without_id"]) == (20, 20)
    assert "carry no id" in item.message
    assert set(found(scene)) == {"launches-missing"}
    for start in (21, 1021, 2021):
        scene.launch(start, start + 1)
    assert found(scene)["kernels-missing"].figures["missing"] == 3


def test_kernels_without_an_id_excuse_the_launches_of_their_process_alone():
    scene = healthy()
    scene.kernel(10_020, 10_060, pid=9)
    scene.kernel(10_060, 10_070, scene.launch(10_000, 10_002, pid=9), pid=9)
    for start in (310, 1210, 2210):
        scene.launch(start, start + 5)
    assert found(scene)["kernels-missing"].figures["missing"] == 3


def test_kernels_whose_launches_are_not_in_the_file():
    scene = healthy()
    scene.kernel(20_000, 20_090, 99_999)
    item = found(scene)["launches-missing"]
    assert (item.severity, item.figures["unlinked"], item.figures["kernels"]) == ("warning", 1, 201)
    assert item.figures["time_share"] == pytest.approx(90 / 8090)
    small = healthy()
    small.kernel(20_000, 20_001, 99_999)
    assert found(small)["launches-missing"].severity == "info"


def test_no_host_calls_is_no_missing_launch():
    scene = Scene()
    scene.kernel(0, 10)
    assert found(scene) == {}


def graphs(counts: list[list[int]]) -> Scene:
    """Steps of 1000 ns; each number is the kernels of one graph launch."""
    scene = Scene()
    for step, launches in enumerate(counts):
        scene.mark("step", 1000 * step, 1000 * (step + 1))
        for place, kernels in enumerate(launches):
            at = 1000 * step + 200 * place
            graph = scene.call("hipGraphLaunch", at, at + 10)
            for number in range(kernels):
                scene.kernel(at + 20 + 10 * number, at + 25 + 10 * number, graph)
    return scene


def test_full_replays_of_different_graphs_are_fine():
    assert found(graphs([[5, 2, 5]] * 4)) == {}
    assert found(graphs([[5, 2, 7]])) == {}


def test_a_graph_launch_without_kernels():
    item = found(graphs([[5, 2], [5, 2], [0, 2]]))["graph-kernels-missing"]
    assert (item.severity, item.figures["without_kernels"], item.figures["graph_launches"]) == (
        "error",
        1,
        6,
    )


def test_the_last_graph_launch_may_run_beyond_the_file():
    assert found(graphs([[5, 2], [5, 2], [5, 0]])) == {}


def test_replays_that_lost_kernels_against_other_steps():
    item = found(graphs([[5, 2], [5, 2], [3, 2], [5, 2]]))["graph-kernels-missing"]
    assert (
        item.figures["short_replays"],
        item.figures["lost_kernels"],
        item.figures["without_kernels"],
    ) == (1, 2, 0)


def test_two_steps_cannot_tell_which_replay_is_short():
    assert found(graphs([[5, 2], [3, 2]])) == {}


def test_all_graphs_empty_beside_a_plain_kernel():
    scene = graphs([[0], [0], [0], [0]])
    scene.kernel(2900, 2950, scene.launch(2800, 2810))
    assert found(scene)["graph-kernels-missing"].figures["without_kernels"] == 2


def test_a_graph_launch_of_the_driver_inside_the_runtime_call_is_one_launch():
    scene = graphs([[5, 2]] * 3)
    scene.call("cuGraphLaunch", 2, 8)
    assert found(scene) == {}


def test_steps_in_which_the_tracer_stopped_recording():
    scene = Scene()
    for number in range(32):
        at = 1000 * number
        scene.mark("step", at, at + 1000, f"ProfilerStep#{number}")
        correlation = scene.launch(at + 10, at + 20)
        if number < 2:
            scene.kernel(at + 50, at + 90, correlation)
    item = found(scene)["steps-without-device-events"]
    assert (
        item.severity,
        item.figures["silent"],
        item.figures["steps"],
        item.figures["first"],
    ) == ("error", 30, 32, "ProfilerStep#2")


def test_a_step_whose_kernels_run_later_or_that_launches_nothing_is_fine():
    scene = Scene()
    for number in range(3):
        scene.mark("step", 1000 * number, 1000 * (number + 1))
    scene.kernel(1500, 1900, scene.launch(100, 110))
    assert "steps-without-device-events" not in found(scene)


def test_steps_without_host_calls_must_show_device_work():
    scene = Scene()
    for number in range(3):
        scene.mark("step", 1000 * number, 1000 * (number + 1))
    scene.kernel(100, 200)
    assert found(scene)["steps-without-device-events"].figures["silent"] == 2


def streams(count: int, *, device: Device, queues: int = 0) -> Scene:
    scene = Scene(devices=(device,))
    for number in range(count):
        scene.kernel(
            100,
            200 + number,
            scene.launch(number, number + 1),
            stream=number,
            queue=number % queues if queues else -1,
        )
    return scene


def test_more_busy_streams_than_hardware_queues():
    item = found(streams(6, device=Device("0", name="AMD Instinct MI300X")))[
        "streams-exceed-queues"
    ]
    assert (item.figures["streams"], item.figures["queues"], item.figures["shared_ns"]) == (
        6,
        4,
        201 - 4,
    )
    assert found(streams(4, device=Device("0", vendor="AMD"))) == {}
    assert found(streams(6, device=Device("0", name="NVIDIA H100", vendor="NVIDIA"))) == {}


def test_recorded_queues_go_before_the_default():
    assert (
        found(streams(3, device=Device("0", vendor="AMD"), queues=2))[
            "streams-exceed-queues"
        ].figures["queues"]
        == 2
    )
    assert found(streams(6, device=Device("0", vendor="AMD"), queues=6)) == {}


def test_streams_that_are_busy_in_turn_share_nothing():
    scene = Scene(devices=(Device("0", vendor="AMD"),))
    for number in range(8):
        scene.kernel(
            100 * number + 20,
            100 * number + 50,
            scene.launch(100 * number, 100 * number + 10),
            stream=number,
        )
    assert found(scene) == {}


@pytest.mark.parametrize(
    ("severity", "message", "expected"),
    [
        ("error", "its compressed data ends early", ["truncated-file"]),
        ("error", "it ends inside an event", ["truncated-file"]),
        ("error", "its list of events is not closed", ["truncated-file"]),
        ("warning", "the capture window ended early", []),
        ("warning", "records dropped by the tool: its buffer was full", ["events-dropped"]),
        ("warning", "rows without a name", []),
    ],
)
def test_problems_of_readers_that_make_a_trace_incomplete(severity, message, expected):
    assert [
        item.id for item in from_problems([Problem(severity, "a.json", 2, message)])
    ] == expected


def test_problems_stand_among_the_findings():
    scene = healthy()
    scene.problems = (Problem("error", "a.json", 1, "it ends inside an event"),)
    assert found(scene)["truncated-file"].figures == {"count": 1}


@pytest.mark.parametrize("tool", ["amd-log", "miopen-log"])
def test_a_log_of_the_host_has_lost_no_kernels(tool: str):
    scene = Scene(sources=(Source("host.log", tool, pid=7),))
    scene.launch(0, 5)
    assert found(scene) == {}
    scene.sources = (*scene.sources, Source("a.json", "kineto", pid=7))
    scene.launch(10, 15, source=1)
    assert found(scene)["kernels-missing"].figures["launches"] == 1


def test_totals_alone_are_no_empty_trace():
    totals = Trace(
        sources=(Source("stats.csv", "rocprof-stats"),),
        strings=Strings(),
        statistics=(StatRow("k", KERNELS, 1, 10),),
    )
    assert findings(totals) == ()


def test_steps_of_other_executions_say_nothing_of_replayed_dispatches():
    def scene(tool: str) -> Scene:
        made = Scene(sources=(Source("pmc_perf.csv", tool), Source("steps.jsonl", "steps", pid=7)))
        made.kernel(50, 90)
        for start in (0, 100, 200):
            made.mark("step", start, start + 100, source=1)
        return made

    assert found(scene("rocprof-compute")) == {}
    assert found(scene("rocprofv3-csv"))["steps-without-device-events"].figures["silent"] == 2


def test_each_process_is_judged_by_its_own_launches():
    """A process that ends early has lost nothing, and one that lost kernels is told apart from
    others that lost none.
    """
    scene = Scene()
    for start in range(0, 2000, 10):
        scene.kernel(start + 5, start + 8, scene.launch(start, start + 2, pid=7), pid=7)
        if start < 500:
            scene.kernel(start + 5, start + 8, scene.launch(start, start + 2, pid=8), pid=8)
    # behind the last record of their process: perhaps beyond the end of its file
    scene.launch(600, 602, pid=8)
    assert found(scene) == {}
    scene.launch(301, 302, pid=8)
    (item,) = (one for one in findings(scene.build()) if one.id == "kernels-missing")
    assert item.message == "process 8: 1 of 52 kernel launches have no kernel in the trace"
    assert (item.severity, item.figures["process"]) == ("error", "process 8")
    scene.launch(301, 302, pid=7)
    lost = [one for one in findings(scene.build()) if one.id == "kernels-missing"]
    assert [(one.figures["missing"], one.figures["launches"]) for one in lost] == [
        (1, 201),
        (1, 52),
    ]
    assert [one.severity for one in lost] == ["warning", "error"]
    # a process without any record is judged by its file
    scene.launch(100, 101, pid=9)
    assert "process 9: 1 of 1 kernel launches" in " ".join(
        one.message for one in findings(scene.build())
    )
