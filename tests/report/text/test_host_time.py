"""What the host did, in the sentences that people read: from made traces of a device whose cause is
planted, and from records of runs on the CPU.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from profharness.analysis.host.kinds import writes
from profharness.analysis.host.records import HostPart, HostTime
from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.records import HotspotRow, Hotspots, Summary
from profharness.analysis.run.checks import NOBODY, telemetry_findings
from profharness.analysis.summarise import summarise_trace
from profharness.findings import Finding, finding
from profharness.report.text.measured.host_time import (
    advice_for,
    crowded,
    groups,
    host_time_lines,
    idle_advice,
    kind_items,
    short_calls,
    step_sentence,
    without_waits,
)
from profharness.report.text.sentences import sentences
from profharness.stats import intervals
from profharness.stats.streams import streams
from profharness.trace.columns.stacks import Frame, text_of
from profharness.trace.model import HostSamples, Trace
from tests.analysis.scene import Scene

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STEP, KERNEL = 1_000_000, 100_000
NOT_SAMPLED: dict[str, float] = {}


def traced(*what: tuple[str, str, int, int], cores: dict[str, float] = NOT_SAMPLED) -> Trace:
    """Ten steps of 1 ms, each with one kernel of 0.1 ms; between its end and the next launch the
    host is in `what`: table, name, start and end within the step. `cores` are what telemetry says
    of the CPU meanwhile, by metric.
    """
    scene = Scene()
    for step in range(11):
        at = step * STEP
        scene.mark("step", at, at + STEP, f"ProfilerStep#{step}")
        scene.kernel(at, at + KERNEL, scene.launch(at - 10_000, at - 5_000))
        for table, name, start, end in what:
            if table in ("range", "gc", "frame"):
                scene.mark(table, at + start, at + end, name)
            elif table == "op":
                scene.op(name, at + start, at + end)
            else:
                scene.call(name, at + start, at + end)
    scene.call("hipGetDevice", 11 * STEP, 11 * STEP + 10)
    for metric, value in cores.items():
        for at in range(0, 11 * STEP, STEP):
            scene.sample(metric, at, at + STEP, value)
    return scene.build()


def steps_with(*what: tuple[str, str, int, int]) -> Summary:
    return summarise_trace(traced(*what), "made.json")


def sampled(trace: Trace, runs: float, *seen: tuple[int, tuple[Frame, ...]]) -> Trace:
    """The trace with samples of its thread every 10 µs: in each step it is from a time on in the
    stack after it, and runs on a core for this share of the time.
    """
    width = 10_000
    at = list(range(0, 11 * STEP, width))
    stacks = [[stack for start, stack in seen if start <= now % STEP][-1] for now in at]
    samples = HostSamples.build(
        len(at),
        at_ns=at,
        pid=7,
        tid=1,
        stack=[trace.strings.code(text_of(stack)) for stack in stacks],
        cpu_ns=[round(number * width * runs) for number in range(len(at))],
        delay_ns=0,
        source=0,
    )
    return replace(trace, host_samples=samples)


STEP_LINE = Frame("/home/me/train.py", 12, "step")
LOGGING = Frame("/usr/lib/python3.11/logging/__init__.py", 1477, "info")
FLUSH = Frame("/usr/lib/python3.11/logging/__init__.py", 1082, "flush")


def test_logging_to_a_slow_disk_is_named_by_sampled_lines():
    trace = sampled(traced(), 0.05, (0, (STEP_LINE,)), (150_000, (FLUSH, LOGGING, STEP_LINE)))
    said = sentences(summarise_trace(trace, "made.json"))
    # the first sample there speaks from half of the way to the one before it on
    named = "84.5 % while the host writes logs or files (train.py:12 step > logging.info)"
    assert named in said.answer
    assert "QueueHandler" in said.next


def test_a_handler_of_the_programs_own_is_writing_too():
    handler = Frame("/home/me/handlers.py", 7, "flush")
    trace = sampled(traced(), 0.05, (0, (STEP_LINE,)), (150_000, (handler, LOGGING, STEP_LINE)))
    said = sentences(summarise_trace(trace, "made.json"))
    assert "while the host writes logs or files (handlers.py:7 flush)" in said.answer


def test_files_that_the_program_writes_itself_are_lines_that_wait():
    """No frame tells that they write: the line is named."""
    trace = sampled(traced(), 0.05, (0, (STEP_LINE,)))
    said = sentences(summarise_trace(trace, "made.json"))
    assert "while the host runs Python (train.py:12 step)" in said.answer


def crowd(share: float, advice: str = NOBODY) -> Finding:
    waited = finding("cpu-pressure", "the workload waited for a core", waiting_share=share)
    return msgspec.structs.replace(waited, advice=advice)


def test_a_device_that_waits_for_threads_without_cores_is_told_what_to_change():
    summary = steps_with(("op", "aten::linear", 110_000, 980_000))
    said = sentences(msgspec.structs.replace(summary, findings=(crowd(0.84),)))
    assert said.answer.endswith(
        "87.0 % while the host works through operators (aten::linear). Its threads wait for a core "
        "84 % of the time although nothing else ran here, as more threads than cores do."
    )
    assert "fewer threads (OMP_NUM_THREADS" in said.next
    quiet = sentences(msgspec.structs.replace(summary, findings=(crowd(0.1),)))
    assert "threads" not in quiet.answer
    assert "fewer threads" not in quiet.next
    others = sentences(msgspec.structs.replace(summary, findings=(crowd(0.84, "other work"),)))
    assert "threads" not in others.answer


@pytest.mark.parametrize(
    ("cores", "named"),
    [
        # sixteen threads on two cores: two run, fourteen wait, and nobody else does anything
        ({"cpu_tree": 2.0, "cpu_tree_wait": 14.0, "cpu_node": 2.02}, True),
        # two threads on two cores
        ({"cpu_tree": 2.0, "cpu_tree_wait": 0.05, "cpu_node": 2.02}, False),
        # they wait as long, but for what others do
        ({"cpu_tree": 0.5, "cpu_tree_wait": 3.5, "cpu_node": 2.0}, False),
    ],
)
def test_threads_without_cores_are_told_by_a_trace_with_telemetry(
    cores: dict[str, float], named: bool
):
    """The device waits for an operator whose threads take the cores from one another."""
    trace = traced(("op", "aten::linear", 110_000, 980_000), cores=cores)
    figures = figures_in(streams(trace), intervals.window(0, 11 * STEP), "telemetry")
    findings = telemetry_findings(trace, figures)
    summary = msgspec.structs.replace(summarise_trace(trace, "made.json"), findings=findings)
    said = sentences(summary)
    assert "aten::linear" in said.answer
    assert ("wait for a core 88 % of the time although nothing else ran" in said.answer) is named
    assert ("fewer threads" in said.next) is named


def test_what_fewer_threads_do_not_help_keeps_its_advice():
    summary = steps_with(("range", LOADER, 110_000, 980_000))
    said = sentences(msgspec.structs.replace(summary, findings=(crowd(0.84),)))
    assert "num_workers" in said.next


PLANTED = {
    "loader": (
        (("range", LOADER, 110_000, 980_000), ("op", "aten::sqrt", 300_000, 700_000)),
        "87.0 % while the host waits for the DataLoader",
        "DataLoader(num_workers=...)",
    ),
    "garbage collection": (
        (
            ("op", "aten::linear", 110_000, 200_000),
            ("gc", "garbage collection, generation 2", 200_000, 900_000),
        ),
        "70.0 % while the host collects garbage",
        "gc.freeze()",
    ),
    "a value read in the loop": (
        (
            ("op", "aten::item", 20_000, 105_000),
            ("call", "hipMemcpyWithStream", 30_000, 104_000),
            ("op", "aten::add", 500_000, 510_000),
        ),
        "90.0 % in gaps that follow aten::item",
        ".item()",
    ),
    "a slow allocator": (
        (("op", "aten::empty", 110_000, 980_000), ("call", "hipMalloc", 120_000, 970_000)),
        "85.0 % while the host allocates device memory (hipMalloc)",
        "expandable_segments",
    ),
    "logging to a slow disk, by functions": (
        (
            ("frame", "train.py(12): report", 110_000, 985_000),
            ("frame", "logging/__init__.py(1477): info", 112_000, 980_000),
            ("frame", "logging/__init__.py(1082): flush", 150_000, 970_000),
            (
                "frame",
                "<built-in method flush of _io.TextIOWrapper object at 0x7f>",
                160_000,
                960_000,
            ),
        ),
        "86.8 % while the host writes logs or files (logging/__init__.py(1477): info)",
        "QueueHandler",
    ),
    "a checkpoint that is written in the loop": (
        (
            ("frame", "torch/serialization.py(943): save", 110_000, 980_000),
            ("op", "aten::empty", 300_000, 310_000),
        ),
        "86.0 % while the host writes logs or files (torch/serialization.py(943): save)",
        "writing less often",
    ),
    "operators": (
        (("op", "aten::miopen_convolution", 110_000, 980_000),),
        "87.0 % while the host works through operators (aten::miopen_convolution)",
        "torch.compile",
    ),
}


@pytest.mark.parametrize("cause", PLANTED)
def test_the_answer_names_a_planted_cause(cause: str):
    what, named, advice = PLANTED[cause]
    said = sentences(steps_with(*what))
    assert named in said.answer
    assert advice in said.next


def test_a_cause_that_holds_less_than_half_of_the_idle_time_is_not_the_reason():
    said = sentences(steps_with(("range", LOADER, 110_000, 400_000)))
    assert "DataLoader" not in said.answer
    assert said.answer.endswith("mostly host not ready (89.0 %).")


def test_frames_of_python_name_the_line_that_took_most():
    summary = steps_with(
        ("frame", "transforms.py(390): normalize", 110_000, 400_000),
        ("frame", "pipeline.py(20): read", 400_000, 800_000),
        ("frame", "pipeline.py(40): crop", 800_000, 980_000),
    )
    assert (
        "87.0 % while the host runs Python (most in pipeline.py(20): read: 40.0 %)"
        in sentences(summary).answer
    )


def on_cpu(*parts: HostPart, steps: int = 20) -> HostTime:
    total = sum(part.ns for part in parts)
    named = tuple(msgspec.structs.replace(part, share=part.ns / total) for part in parts)
    return HostTime(of="window", window_ns=total, total_ns=total, steps=steps, parts=named)


def part(kind: str, ns: int, name: str = "", **more: float) -> HostPart:
    return HostPart(kind=kind, name=name, ns=ns, share=0.0, **more)


def test_a_step_of_operations_names_the_largest():
    host = on_cpu(part("operator", 900, "aten::mm"), part("operator", 100, "aten::add"))
    assert step_sentence(host) == (
        "Operations take 100.0 % of each step (50 ns), aten::mm alone 90.0 %."
    )


def operators(calls: int, total_ns: int) -> Hotspots:
    row = HotspotRow(
        name="aten::add",
        category="other",
        calls=calls,
        total_ns=total_ns,
        share=1.0,
        mean_ns=None,
        median_ns=None,
        min_ns=None,
        max_ns=None,
        std_ns=None,
    )
    return Hotspots(by="op", total_ns=total_ns, rows=(row,))


def test_operations_that_last_no_longer_than_their_call_are_told_so():
    host = on_cpu(part("operator", 1000, "aten::add"))
    short = short_calls(operators(800, 2_400_000))
    assert "at 3.0 µs a call that is what calling them costs" in step_sentence(host, short)
    assert short_calls(operators(800, 24_000_000)) == ""
    assert short_calls(None) == ""


def test_a_step_of_the_loader_speaks_of_waiting_for_it():
    host = on_cpu(part("data_loader", 870, LOADER), part("operator", 130, "aten::mm"))
    assert step_sentence(host) == (
        "87.0 % of each step (50 ns) goes to waiting for the DataLoader; operations take 13.0 %."
    )
    assert "num_workers" in advice_for(groups(host)[0])


def test_a_step_of_writing_names_the_place_and_that_it_waits():
    line = part("writing", 870, "t.py:9 step > logging.info", samples=99, low=0.8, running=0.1)
    host = on_cpu(line, part("operator", 130, "aten::mm"))
    assert step_sentence(host) == (
        "87.0 % of each step (50 ns) goes to writing logs or files (t.py:9 step > logging.info, "
        "which waits 90 % of that time); operations take 13.0 %."
    )
    assert "QueueHandler" in advice_for(groups(host)[0])


def test_a_line_that_waits_is_told_only_where_nothing_else_held_the_cores():
    line = part("python", 980, "ckpt.py:11 save", samples=200, low=0.96, high=0.99, running=0.1)
    host = on_cpu(line, part("operator", 20, "aten::mm"))
    assert "98.0 % in ckpt.py:11 save, which waits 90 % of that time" in step_sentence(host)
    assert "beside the steps" in advice_for(groups(host)[0])
    busy = without_waits(host)
    assert "waits" not in step_sentence(busy)
    assert "making ckpt.py:11 save faster" in advice_for(groups(busy)[0])


def test_functions_that_were_recorded_are_what_to_look_at():
    host = on_cpu(part("python", 980, "train.py(9): step"), part("operator", 20, "aten::mm"))
    advice = advice_for(groups(host)[0])
    assert "py-spy" not in advice
    assert "flame graph of Python's functions" in advice


@pytest.mark.parametrize(
    ("name", "is_writing"),
    [
        ("logging/__init__.py(2140): info", True),
        ("/usr/lib/python3.11/logging/handlers.py(71): emit", True),
        ("<built-in method flush of _io.TextIOWrapper object at 0x7f>", True),
        ("<built-in function fsync>", True),
        ("<built-in function print>", True),
        ("torch/serialization.py(943): save", True),
        ("torch/serialization.py(1400): load", False),
        ("torch/utils/tensorboard/writer.py(380): add_scalar", True),
        ("train.py(3): write", False),
        ("mylogging/core.py(3): emit", False),
        ("<built-in method read of _io.BufferedReader object at 0x7f>", False),
    ],
)
def test_what_writes_is_known_by_its_function(name: str, is_writing: bool):
    assert writes(name) is is_writing


def test_time_that_nothing_recorded_asks_for_the_lines_of_python():
    host = on_cpu(part("nothing", 980), part("operator", 20, "aten::mm"))
    assert step_sentence(host).startswith("98.0 % of each step (50 ns) is outside of any")
    assert "--profile py-spy" in advice_for(groups(host)[0])


def test_kinds_and_lines_leave_out_what_the_host_did_not_hold_up():
    summary = steps_with(("range", LOADER, 110_000, 980_000))
    assert summary.host is not None
    assert kind_items(summary.host)[0] == "DataLoader 87.0 %"
    shown = list(host_time_lines(summary.host))
    assert shown[0].startswith("host      DataLoader 87.0 %")
    assert "host not ready: DataLoader, enumerate#_MultiProcessingDataLo" in shown[1]
    assert idle_advice(None) == ""


def test_threads_that_hold_one_another_up_are_told():
    waited = finding("cpu-pressure", "the workload waited for a core", waiting_share=0.84)
    alone = msgspec.structs.replace(waited, advice=NOBODY)
    assert crowded([alone]) == (
        "Its threads wait for a core 84 % of the time although nothing else ran here, as "
        "more threads than cores do."
    )
    assert crowded([waited]) == ""  # other work may have held them
    few = finding("cpu-pressure", "the workload waited for a core", waiting_share=0.1)
    assert crowded([msgspec.structs.replace(few, advice=NOBODY)]) == ""
