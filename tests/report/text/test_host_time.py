"""What the host did, in the sentences that people read: from made traces of a device whose cause is
planted, and from records of runs on the CPU.
"""

from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.host.records import HostPart, HostTime
from profharness.analysis.records import HotspotRow, Hotspots, Summary
from profharness.analysis.run.checks import NOBODY
from profharness.analysis.summarise import summarise_trace
from profharness.findings import finding
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
from tests.analysis.scene import Scene

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STEP, KERNEL = 1_000_000, 100_000


def steps_with(*what: tuple[str, str, int, int]) -> Summary:
    """Ten steps of 1 ms, each with one kernel of 0.1 ms; between its end and the next launch the
    host is in `what`: table, name, start and end within the step.
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
    return summarise_trace(scene.build(), "made.json")


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
        "81.8 % in gaps that follow aten::item",
        ".item()",
    ),
    "a slow allocator": (
        (("op", "aten::empty", 110_000, 980_000), ("call", "hipMalloc", 120_000, 970_000)),
        "85.0 % while the host allocates device memory (hipMalloc)",
        "expandable_segments",
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
    assert said.answer.endswith("mostly host not ready (89.1 %).")


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


def test_a_line_that_waits_is_told_only_where_nothing_else_held_the_cores():
    line = part("python", 980, "ckpt.py:11 save", samples=200, low=0.96, high=0.99, running=0.1)
    host = on_cpu(line, part("operator", 20, "aten::mm"))
    assert "98.0 % in ckpt.py:11 save, which waits 90 % of that time" in step_sentence(host)
    assert "beside the steps" in advice_for(groups(host)[0])
    busy = without_waits(host)
    assert "waits" not in step_sentence(busy)
    assert "making ckpt.py:11 save faster" in advice_for(groups(busy)[0])


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
