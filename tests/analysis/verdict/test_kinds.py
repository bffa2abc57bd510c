"""Verdicts of whole small traces: each kind, what carries none, and when a bound holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.parts import combine, part
from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.readers.rocprofv3 import rocpd_reader as rocpd
from profharness.report.page import html
from profharness.report.text.command_sentences import next_step
from profharness.report.text.metrics import metrics_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import Counters, Source, Trace
from tests.analysis.kernels.test_roofline import MEASURED, N, scene, with_ops
from tests.analysis.scene import Scene
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program

PRODUCT_NS = round(2 * N**3 / 40e12 * 1e9)
COPY_NS = round(2 * 4 * N * N / 1e12 * 1e9)
PAIR = ([[N, N], [N, N]], ["float", "float"])
TWELVE = range(12)


def judged(trace: Trace) -> Summary:
    return summarise_trace(trace, "made up", yardstick=Yardstick((MEASURED,)))


def operators(op: str, length: int, workgroups: int = 1000) -> Trace:
    """Twelve kernels of one operator, one after another."""
    made = scene()
    for index in TWELVE:
        start = index * length
        made.kernel(
            start,
            start + length,
            op=made.op(op, start, start + 10),
            name="Cijk_Ailk_Bljk_SB",
            workgroups=workgroups,
        )
    return with_ops(made, [PAIR] * len(TWELVE))


def launched(spacing: int, length: int, **kernel: int) -> Scene:
    """Twelve kernels, each launched 10 ns before it starts."""
    made = scene()
    for index in TWELVE:
        start = index * spacing
        made.kernel(start, start + length, made.launch(start - 10, start - 5), **kernel)
    return made


def talking(name: str) -> Trace:
    made = launched(1000, 100)
    for index in TWELVE:
        start = index * 1000 + 100
        if name == "copy":
            made.copy(start, start + 900, made.call("hipMemcpyAsync", start - 10, start - 5))
        else:
            made.kernel(start, start + 900, made.launch(start - 10, start - 5), name=name)
    return made.build()


def synchronising() -> Trace:
    made = launched(1000, 100)
    for index in TWELVE:
        made.call("hipStreamSynchronize", index * 1000 + 100, index * 1000 + 985)
    return made.build()


def queued() -> Trace:
    """Gaps between kernels that were launched long before."""
    made = scene()
    for index in TWELVE:
        call = made.launch(-1000 + 10 * index, -995 + 10 * index)
        made.kernel(index * 1000, index * 1000 + 100, call)
    return made.build()


@pytest.mark.parametrize(
    ("trace", "kind", "bound"),
    [
        (operators("aten::mm", round(PRODUCT_NS / 0.8)), "compute", None),
        (operators("aten::copy_", round(COPY_NS / 0.8)), "bandwidth", None),
        (operators("aten::mm", round(PRODUCT_NS / 0.2)), "inside-kernel", None),
        (operators("aten::mm", PRODUCT_NS, workgroups=10), "underfilled", None),
        (operators("mine", PRODUCT_NS), "kernels", None),
        (talking("ncclDevKernel_AllReduce"), "communication", 10.0),
        (talking("copy"), "copy", 10.0),
        (launched(1000, 100).build(), "idle-host-not-ready", 9.25),
        (synchronising(), "idle-synchronisation", 9.25),
        (queued(), "idle-queued-gap", 9.25),
    ],
)
def test_each_kind_is_found(trace: Trace, kind: str, bound: float | None) -> None:
    summary = judged(trace)
    assert summary.verdict is not None
    assert (summary.verdict.kind, summary.verdict_needs) == (kind, "")
    assert summary.verdict.at_most == (None if bound is None else pytest.approx(bound))


def test_every_form_holds_the_same_sentence() -> None:
    summary = judged(launched(1000, 100).build())
    assert summary.verdict is not None
    assert summary.verdict.text.startswith("Not saturated: the device is idle 89.2 % of the time")
    assert f"verdict   {summary.verdict.text}\n" in metrics_text(summary)
    assert summary.verdict.text in html.render(summary)


def test_kernels_of_unknown_work_say_what_to_record() -> None:
    without_shapes = judged(launched(100, 100).build())
    assert without_shapes.verdict is not None
    assert "record the operators' shapes (--profile torch" in without_shapes.verdict.text
    assert "hardware counters (--pmc)" in without_shapes.verdict.text
    without = judged(operators("mine", PRODUCT_NS)).verdict.text
    assert "no formula tells the work of their operators (--formulas FILE adds some)" in without
    graph = launched(100, 100)
    graph.op("aten::mm", 0, 10)
    call = graph.call("hipGraphLaunch", 1190, 1195)
    for index in range(20):
        graph.kernel(1200 + 100 * index, 1300 + 100 * index, call, name="Cijk_Ailk")
    found = judged(with_ops(graph, [PAIR])).verdict
    assert "(gemm 62.5 %, other 37.5 %)" in found.text
    assert "the trace does not hold (--capture-trace FILE adds it)" in found.text
    before = scene()
    before.op("aten::mm", 0, 10)
    for index in TWELVE:
        before.kernel(100 * index, 100 * index + 100)
    assert "lie before the recording" in judged(with_ops(before, [PAIR])).verdict.text


def needs(trace: Trace) -> str:
    """What a verdict needs on a trace that carries none; its partition is there all the same."""
    summary = judged(trace)
    assert summary.verdict is None
    assert summary.partition is not None
    assert f"no verdict: needs {summary.verdict_needs}" in metrics_text(summary)
    return summary.verdict_needs


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("saxpy(float*, int)", "Try a hardware counter pass on the top kernels (--pmc)."),
        ("void at::native::reduce_kernel<512>(int)", "Try --profile torch, which records"),
        ("_ZN2at6native13reduce_kernelEv", "Try --profile torch, which records"),
        ("triton_poi_fused_add_0", "Try --profile torch, which records"),
    ],
)
def test_a_program_without_torch_is_not_told_to_record_its_operators(name: str, first: str) -> None:
    made = Scene(sources=(Source("a.csv", "rocprofv3-csv"),))
    for start in range(0, 1200, 100):
        made.kernel(start, start + 90, made.launch(start - 10, start - 5), name=name)
    summary = judged(made.build())
    assert summary.verdict is not None
    assert summary.verdict.kind == "kernels"
    assert first in next_step(summary)
    assert ("shapes" in summary.verdict.text) is ("torch" in first)
    assert "hardware counters (--pmc) would tell" in summary.verdict.text


def test_copies_only_carry_no_verdict() -> None:
    made = scene()
    for index in TWELVE:
        call = made.call("hipMemcpyAsync", 1000 * index - 10, 1000 * index)
        made.copy(1000 * index, 1000 * index + 100, call)
    assert needs(made.build()).startswith("kernels in the trace, as it holds copies only")
    together = combine([part(made.build(), name) for name in ("a.json", "b.json")], "both")
    assert (together.verdict, "copies only" in together.verdict_needs) == (None, True)


def test_a_counter_pass_carries_no_verdict() -> None:
    trace = launched(1000, 100).build()
    counted = replace(
        trace,
        counters=Counters.build(
            kernel=[0], name=[trace.strings.code("SQ_WAVES")], value=[4.0], source=[0]
        ),
    )
    assert needs(counted).startswith("a pass without counters")


def test_idle_time_needs_host_calls() -> None:
    made = scene()
    for index in TWELVE:
        made.kernel(1000 * index, 1000 * index + 100)
    assert needs(made.build()).startswith("host calls (")
    made.call("hipGetDevice", 0, 11_000)
    found = judged(made.build()).verdict  # there are calls, and none that explains the gaps
    assert (found.kind, found.at_most) == ("undetermined", None)


def test_kernels_without_times_carry_no_verdict(tmp_path: Path) -> None:
    whole = rocpd.read(write_rocpd(tmp_path / "a.db", program(1)))
    flat = replace(whole, kernels=whole.kernels.with_columns(dur_ns=0 * whole.kernels.dur_ns))
    summary = judged(flat)
    assert (summary.verdict, summary.partition) == (None, None)
    assert summary.verdict_needs.startswith("a timeline")


def capture(captured: int, ran: int) -> Trace:
    """A stream capture with so many launches, and so many kernels that ran after it."""
    made = scene()
    made.call("hipStreamBeginCapture", 0, 5)
    for index in range(captured):
        made.launch(10 + 10 * index, 15 + 10 * index, correlation=NULL)
    end = 10 + 10 * captured
    made.call("hipStreamEndCapture", end, end + 5)
    for index in range(ran):
        start = end + 1000 * (index + 1)
        made.kernel(start, start + 100, made.launch(start - 10, start - 5))
    return made.build()


@pytest.mark.parametrize(("captured", "ran", "carried"), [(21, 20, False), (20, 20, True)])
def test_a_capture_carries_no_verdict_unless_as_much_ran(
    captured: int, ran: int, carried: bool
) -> None:
    trace = capture(captured, ran)
    if carried:
        assert judged(trace).verdict.kind == "idle-host-not-ready"
    else:
        assert needs(trace).startswith(
            "the replays of the captured graphs, as 21 of 41 kernel launches were captured"
        )


def test_a_capture_beside_its_replays_carries_a_verdict() -> None:
    made = scene()
    made.call("hipStreamBeginCapture", 0, 5)
    for index in TWELVE:
        made.launch(10 + 10 * index, 15 + 10 * index, correlation=NULL)
    made.call("hipStreamEndCapture", 200, 205)
    call = made.call("hipGraphLaunch", 300, 305)
    for index in TWELVE:
        made.kernel(1000 * (index + 1), 1000 * (index + 1) + 900, call)
    summary = judged(made.build())
    assert summary.verdict is not None
    assert summary.verdict_needs == ""


def test_one_gap_and_a_handful_of_kernels_make_no_bound() -> None:
    lone = launched(1000, 100)
    lone.kernel(100_000, 100_100, lone.launch(99_990, 99_995))
    found = judged(lone.build()).verdict
    assert (found.kind, found.at_most) == ("idle-host-not-ready", None)
    assert "; one gap of 88.90 µs makes up 88.8 %" in found.text
    few = scene()
    for index in range(9):
        few.kernel(1000 * index, 1000 * index + 100, few.launch(1000 * index - 9, 1000 * index - 5))
    found = judged(few.build()).verdict
    assert (found.kind, found.at_most) == ("idle-host-not-ready", None)
    assert "only 9 kernels and copies ran" in found.text


def test_files_together_add_their_gaps_and_kernels() -> None:
    parts = [part(launched(1000, 100).build(), name) for name in ("a.json", "b.json")]
    together = combine(parts, "both")
    assert (together.verdict.kind, together.verdict.at_most) == (
        "idle-host-not-ready",
        pytest.approx(9.25),
    )
    assert together.grounds.records == 24
    assert together.partition.kernel_parts.total_ns == together.partition.compute_ns
