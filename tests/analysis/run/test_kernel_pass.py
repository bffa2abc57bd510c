from __future__ import annotations

import pytest

from profharness.analysis.kernels.hotspots import by_call, by_kernel
from profharness.analysis.run.kernel_pass import choose
from profharness.analysis.run.summary import summarise_run
from profharness.errors import UsageError
from profharness.rundir.manifest import PassRecord
from profharness.trace.model import Source
from tests.analysis.run.run_scene import manifest
from tests.analysis.scene import Scene


def run() -> Scene:
    """Passes bare (telemetry), torch, rocprofv3 (with torch operators beside), and onnxruntime
    (operators only).
    """
    scene = Scene(
        sources=(
            Source("t.parquet", "telemetry", pass_name="bare", layer="telemetry"),
            Source("a.json", "kineto", pass_name="torch", layer="torch"),
            Source("b.db", "rocpd", pass_name="rocprofv3", layer="rocprofv3"),
            Source("o.json", "onnxruntime", pass_name="onnxruntime", layer="onnxruntime"),
            Source("c.json", "kineto", pass_name="rocprofv3", layer="torch"),
        )
    )
    scene.kernel(0, 10, name="k", source=1)
    scene.kernel(20, 33, name="k", source=2)
    scene.kernel(20, 32, name="k", source=4)
    scene.op("Conv", 0, 5, source=3)
    scene.op("aten::mm", 0, 5, source=1)
    return scene


def test_the_first_layer_in_order_speaks_and_nothing_is_added_up():
    name, trace = choose(run().build())
    assert name == "rocprofv3"
    table = by_kernel(trace)
    assert [(row.calls, row.total_ns) for row in table.rows] == [(1, 13)]


def test_without_kernels_and_operators_the_pass_with_host_calls_speaks():
    scene = Scene(
        sources=(
            Source("t.parquet", "telemetry", pass_name="bare", layer="telemetry"),
            Source("hip.log", "amd-log", pass_name="amd-log", layer="amd-log"),
        )
    )
    scene.call("hipMalloc", 0, 10, source=1)
    name, trace = choose(scene.build())
    assert (name, [row.name for row in by_call(trace).rows]) == ("amd-log", ["hipMalloc"])


@pytest.mark.parametrize(
    ("wanted", "total"), [("torch", 10), ("rocprofv3", 13), ("onnxruntime", 0), ("bare", 0)]
)
def test_a_pass_can_be_asked_for(wanted, total):
    name, trace = choose(run().build(), wanted)
    assert (name, by_kernel(trace).total_ns) == (wanted, total)
    assert {source.pass_name for source in trace.sources} == {wanted}


def test_without_kernels_the_first_pass_with_operators():
    scene = Scene(
        sources=(
            Source("t", "telemetry", pass_name="bare"),
            Source("o", "onnxruntime", pass_name="ort", layer="onnxruntime"),
        )
    )
    scene.op("Conv", 0, 5, source=1)
    name, trace = choose(scene.build())
    assert (name, len(trace.ops)) == ("ort", 1)


def test_operators_follow_their_kernels():
    scene = run()
    scene.kernel(40, 50, name="k", source=1, op=1)
    name, trace = choose(scene.build(), "torch")
    assert name == "torch"
    assert by_kernel(trace).rows[0].op == "aten::mm"


def test_loose_files_are_returned_whole():
    scene = Scene()
    scene.kernel(0, 10)
    trace = scene.build()
    assert choose(trace) == (None, trace)
    with pytest.raises(UsageError, match="no such pass"):
        choose(trace, "torch")


def test_an_unknown_pass_names_those_that_there_are():
    with pytest.raises(UsageError) as caught:
        choose(run().build(), "rocprof")
    assert "bare, torch, rocprofv3, onnxruntime" in caught.value.hint


@pytest.mark.parametrize("perturbing", [False, True])
def test_times_that_counting_changed_give_no_verdict(*, perturbing: bool) -> None:
    """As of `attach --pmc`, where the pass of the counters is the only one."""
    scene = Scene(sources=(Source("b.db", "rocpd", pass_name="rocprofv3-pmc1", layer="rocprofv3"),))
    for start in range(0, 40_000_000, 1_000_000):
        scene.kernel(start, start + 20_000, name="k", source=0)
    record = PassRecord(name="rocprofv3-pmc1", layers=("rocprofv3",), perturbing=perturbing)
    shown = summarise_run(
        manifest(kind="command", points=(), passes=(record,), scan=None), scene.build(), "x"
    )
    needs = "a trace without counters or logs, which change the times of kernels"
    assert (shown.partition is None) == perturbing
    assert (shown.verdict_needs == needs) == perturbing
    assert shown.verdict is None or not perturbing
