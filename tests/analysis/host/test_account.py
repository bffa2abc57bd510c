"""The host's time in made traces whose causes are known to the ns, and on every recorded one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.host.account import of_idle, of_window
from profharness.analysis.host.records import HostTime
from profharness.analysis.host.sums import add_host_times
from profharness.analysis.measurement import measure
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.columns.stacks import Frame, text_of
from profharness.trace.model import Device, HostSamples, Trace
from profharness.understand.load import load
from tests.analysis.scene import Scene
from tests.conftest import shared_path
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def idle(scene: Scene, low: int, high: int) -> HostTime:
    trace = scene.build()
    return of_idle(trace, IdleAnalysis(trace), (0,), Windows(intervals.window(low, high), "", 1))


def window(trace: Trace, low: int, high: int) -> HostTime:
    found = of_window(trace, Windows(intervals.window(low, high), "", 1))
    assert found is not None
    return found


def told(time: HostTime) -> dict[tuple[str, str, str], int]:
    return {(part.cause, part.kind, part.name): part.ns for part in time.parts}


def between_kernels(*, until: int = 1000) -> Scene:
    """Kernels from 100 to 200 and from `until` on, the second launched 10 before it starts."""
    scene = Scene()
    scene.call("hipGetDevice", 0, 1)
    scene.kernel(100, 200, scene.launch(50, 60))
    scene.kernel(until, until + 100, scene.launch(until - 10, until - 5))
    scene.call("hipGetDevice", until + 200, until + 201)
    return scene


def test_a_gap_of_the_loader_is_the_loaders_with_its_operators():
    scene = between_kernels()
    scene.mark("range", 150, 900, LOADER)
    scene.op("aten::stack", 300, 700)
    assert told(idle(scene, 100, 1100)) == {
        ("host_not_ready", "data_loader", LOADER): 700,
        ("host_not_ready", "nothing", ""): 90,
        ("launch_in_progress", "launch_call", "hipLaunchKernel"): 5,
        ("launch_in_progress", "nothing", ""): 5,
    }


def test_a_collection_of_garbage_is_told_from_the_operator_around_it():
    scene = between_kernels()
    scene.op("aten::linear", 200, 900)
    scene.mark("gc", 300, 800, "garbage collection, generation 2")
    found = told(idle(scene, 100, 1100))
    assert found["host_not_ready", "garbage_collection", "garbage collection, generation 2"] == 500
    assert found["host_not_ready", "operator", "aten::linear"] == 200


def test_a_gap_that_follows_a_value_names_the_operator_that_read_it():
    scene = between_kernels()
    scene.op("aten::item", 70, 210)
    scene.call("hipMemcpyWithStream", 80, 205)
    scene.op("aten::add", 400, 450)
    found = idle(scene, 100, 1100)
    assert [(wait.name, wait.gaps, wait.ns) for wait in found.after_waits] == [
        ("aten::item", 1, 800)
    ]


def test_a_wait_that_began_after_the_device_ran_dry_opened_no_gap():
    scene = between_kernels()
    scene.call("hipStreamSynchronize", 300, 320)
    found = idle(scene, 100, 1100)
    assert found.after_waits == ()
    assert told(found)["synchronisation", "synchronisation", "hipStreamSynchronize"] == 20


def test_a_stream_that_waits_for_an_event_names_the_call_that_the_host_is_in():
    scene = Scene()
    scene.kernel(100, 200, scene.launch(50, 60))
    scene.call("hipStreamWaitEvent", 70, 75)
    scene.kernel(1000, 1100, scene.launch(80, 90))
    scene.call("hipMemcpyWithStream", 95, 1000)
    scene.call("hipGetDevice", 1200, 1201)
    assert told(idle(scene, 100, 1100)) == {
        ("waiting_copy_or_event", "copy_call", "hipMemcpyWithStream"): 800
    }


def test_a_slow_allocator_is_named():
    scene = between_kernels()
    scene.op("aten::empty", 220, 920)
    scene.call("hipMalloc", 250, 900)
    assert told(idle(scene, 100, 1100))["host_not_ready", "allocator", "hipMalloc"] == 650


def sampled(rows: list[tuple[int, str, int]]) -> Trace:
    """One operator from 0 to 100 and nothing else until 1000; samples as time, place and processor
    time.
    """
    scene = Scene()
    scene.op("aten::mm", 0, 100)
    scene.op("aten::mm", 990, 1000)
    stacks = {
        "own": text_of([Frame("/home/u/train.py", 7, "tokenise")]),
        "below": text_of(
            [
                Frame("/usr/lib/python3.11/logging/__init__.py", 900, "emit"),
                Frame("/home/u/train.py", 9, "<module>"),
            ]
        ),
    }
    table = HostSamples.build(
        at_ns=[at for at, *_ in rows],
        stack=[scene.strings.code(stacks[name]) for _, name, _ in rows],
        cpu_ns=[cpu for *_, cpu in rows],
        delay_ns=0,
        pid=7,
        tid=1,
        source=0,
    )
    return replace(scene.build(), host_samples=table)


def test_frames_of_our_own_hooks_are_told_as_one():
    """What they call in C is theirs; what the program asked for through them is not."""
    hooks = "/opt/wrappers/hooks/profharness_hooks"
    scene = Scene()
    scene.op("aten::mm", 0, 10)
    for name, start, end in (
        ("train.py(9): step", 10, 1000),
        (f"{hooks}/optimizers.py(60): reporting_step", 100, 700),
        ("torch/optim/sgd.py(30): step", 110, 300),
        (f"{hooks}/step_log.py(105): Recorder._record", 400, 600),
        ("<built-in function thread_time_ns>", 450, 550),
        ("<built-in function len>", 800, 850),
    ):
        scene.mark("frame", start, end, name)
    assert told(window(scene.build(), 0, 1000)) == {
        ("", "operator", "aten::mm"): 10,
        ("", "python", "train.py(9): step"): 340,
        ("", "python", "profharness's own hooks"): 410,
        ("", "python", "torch/optim/sgd.py(30): step"): 190,
        ("", "python", "<built-in function len>"): 50,
    }


def test_samples_share_out_the_time_outside_of_operators():
    found = window(
        sampled([(100, "own", 0), (400, "own", 300), (700, "below", 310), (990, "own", 600)]),
        0,
        1000,
    )
    assert told(found) == {
        ("", "operator", "aten::mm"): 110,
        ("", "python", "train.py:7 tokenise"): 595,  # until 550, and from 845 on
        ("", "writing", "train.py:9 > logging.emit"): 295,
    }
    parts = {part.name: part for part in found.parts}
    # between samples of two places the thread ran as long in the half of each
    assert parts["train.py:7 tokenise"].running == pytest.approx((300 + 5 + 145) / 595)
    assert parts["train.py:9 > logging.emit"].running == pytest.approx((5 + 145) / 295)
    low, high = parts["train.py:7 tokenise"].low, parts["train.py:7 tokenise"].high
    assert low is not None
    assert high is not None
    assert low < 0.59 < high <= 0.89


def test_time_before_the_first_sample_and_after_a_pause_of_the_sampler_is_nobodys():
    at = [200, 210, 220, 230, 900]
    found = told(window(sampled([(one, "own", one) for one in at]), 0, 1000))
    # 200 to 230, and four usual distances before the sample at 900
    assert found["", "python", "train.py:7 tokenise"] == 30 + 40
    assert found["", "nothing", ""] == 1000 - 110 - 70


@given(
    st.lists(st.integers(0, 1000), min_size=0, max_size=30, unique=True),
    st.integers(0, 99),
    st.integers(101, 1000),
)
def test_parts_always_sum_to_the_window(at: list[int], low: int, high: int):
    found = window(
        sampled([(one, ("own", "below")[one % 2], one) for one in sorted(at)]), low, high
    )
    assert sum(part.ns for part in found.parts) == found.total_ns == high - low


def test_files_add_part_by_part():
    scene = between_kernels()
    scene.mark("range", 150, 900, LOADER)
    one = idle(scene, 100, 1100)
    both = add_host_times([one, one])
    assert both is not None
    assert told(both) == {key: 2 * ns for key, ns in told(one).items()}
    assert (both.window_ns, both.total_ns) == (2 * one.window_ns, 2 * one.total_ns)
    assert [part.share for part in both.parts] == [part.share for part in one.parts]
    assert add_host_times([one, None]) is None


RECORDED = (
    "a100_event_sync",
    "a100_multistream_graphs_rank0of16",
    "a100_nccl_rank0of2",
    "a100_train_rank3of8_intus",
    "a100_triton_example",
    "h100_bert_small",
    "h100_qwen0.5b_prefill",
    "mi210_gpu_only",
    "mi250_minitoy_rocm6.2",
    "mi300x_bert_small",
    "mi300x_qwen0.5b_prefill",
    "mi300x_resnet_act_ckpt_rank0of8",
    "mi300x_sglang_graph_capture",
    "mi300x_sglang_qwen3-8b_decode_hipgraph",
    "mi300x_timesformer",
    "mi300x_torch_compile_triton",
    "mi300x_vllm_piecewise_graphs",
    "mi300x_xdit_sd3.5",
    "sampled_rank0of128",
    "v100_epoch_ns_timestamps",
    "v100_resnet50_old_schema",
)


CAUSES = (
    "no_host_record",
    "waiting_copy_or_event",
    "queued_gap",
    "launch_in_progress",
    "synchronisation",
    "host_not_ready",
)


def are_those_of_the_partition(trace: Trace) -> set[str]:
    """Checks that the host's time in the gaps sums to each cause of the partition; the causes that
    there are.
    """
    whole = measure(trace)
    found = of_idle(trace, whole.whole.idle, whole.devices, whole.windows)
    causes = whole.partition.idle_causes
    assert causes is not None
    assert sum(part.ns for part in found.parts) == found.total_ns == whole.partition.idle_ns
    for cause in CAUSES:
        of_cause = sum(part.ns for part in found.parts if part.cause == cause)
        assert of_cause == getattr(causes, f"{cause}_ns"), cause
    return {part.cause for part in found.parts}


@pytest.mark.parametrize("name", RECORDED)
def test_on_every_recorded_trace_the_causes_are_those_of_the_partition(name: str):
    assert are_those_of_the_partition(load([shared_path(f"fixtures/kineto/{name}.json.gz")]).trace)


def of_every_cause(at: int = 0, device: int = 0) -> Scene:
    """Gaps of every cause, one after the other; the last kernel's launch is not recorded."""
    scene = Scene(devices=tuple(Device(str(number)) for number in range(device + 1)))
    times = ((100, 200, 50, 60), (500, 600, 480, 490), (620, 700, 495, 505), (705, 800, 695, 720))
    for start, end, called, returned in times:
        by = scene.launch(at + called, at + returned)
        scene.kernel(at + start, at + end, by, device=device)
    scene.call("hipDeviceSynchronize", at + 210, at + 400)
    scene.call("hipStreamWaitEvent", at + 730, at + 735)
    scene.kernel(at + 1200, at + 1300, scene.launch(at + 740, at + 745), device=device)
    scene.op("aten::item", at + 900, at + 1100)
    scene.mark("range", at + 420, at + 470, LOADER)
    scene.kernel(at + 1500, at + 1600, device=device)
    return scene


def test_on_a_trace_with_every_cause_they_are_those_of_the_partition():
    assert are_those_of_the_partition(of_every_cause().build()) == set(CAUSES)


@given(
    times=st.lists(st.tuples(*[st.integers(1, 60)] * 4), min_size=2, max_size=12),
    calls=st.lists(
        st.tuples(
            st.sampled_from(
                ["hipStreamSynchronize", "hipMemcpyWithStream", "hipStreamWaitEvent", "hipMalloc"]
            ),
            st.integers(0, 1500),
            st.integers(1, 300),
        ),
        max_size=6,
    ),
    devices=st.integers(1, 2),
)
def test_on_any_trace_they_are_those_of_the_partition(
    times: list[tuple[int, ...]], calls: list[tuple[str, int, int]], devices: int
):
    """Kernels in turn on one or two devices, each launched before it starts, and other calls."""
    scene = Scene(devices=tuple(Device(str(number)) for number in range(devices)))
    called = end = 0
    for number, (before, lasts, delay, runs) in enumerate(times):
        called += before
        by = scene.launch(called, called + lasts)
        start = max(end, called + delay)
        end = start + runs
        scene.kernel(start, end, by, device=number % devices)
        called += lasts
    for name, start, lasts in calls:
        scene.call(name, start, start + lasts, tid=2)
    are_those_of_the_partition(scene.build())


def test_the_loader_of_a_recorded_training_is_named():
    trace = load([shared_path("fixtures/kineto/v100_resnet50_old_schema.json.gz")]).trace
    whole = measure(trace)
    found = of_idle(trace, whole.whole.idle, whole.devices, whole.windows)
    assert found.parts[0].kind == "data_loader"
    assert found.parts[0].share == pytest.approx(0.331, abs=0.001)


def test_the_loader_of_a_training_is_named(tmp_path: Path):
    """As torch's profiler marks it: three steps of 1 ms, of which the loader takes 300 us."""
    events = []
    for step in range(3):
        at = 1000 * step
        events += [
            event("user_annotation", f"ProfilerStep#{step}", at, 1000),
            event("user_annotation", LOADER, at + 50, 300),
            op("aten::stack", at + 100, 100, 2 * step + 1),
            launch("cudaLaunchKernel", at + 390, 10, step + 1),
            kernel("sgemm", at + 400, 600, correlation=step + 1),
        ]
    trace = load([write(tmp_path / "training.pt.trace.json", document(events))]).trace
    whole = measure(trace)
    found = of_idle(trace, whole.whole.idle, whole.devices, whole.windows)
    assert (found.parts[0].kind, found.parts[0].name) == ("data_loader", LOADER)
    assert found.parts[0].share == pytest.approx(0.3)


def test_methods_of_many_objects_are_one():
    scene = between_kernels()
    scene.mark("frame", 210, 310, "<built-in method astype of numpy.ndarray object at 0x7f70>")
    scene.mark("frame", 400, 450, "<built-in method astype of numpy.ndarray object at 0x7fab>")
    found = told(idle(scene, 100, 1100))
    assert found["host_not_ready", "python", "<built-in method astype of numpy.ndarray>"] == 150
