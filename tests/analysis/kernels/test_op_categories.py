"""By category where no device works: operators' own time on the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profharness.analysis.kernels import hotspots
from profharness.trace.model import Copies, Kernels, Trace
from profharness.understand.load import load
from tests.analysis.scene import Scene
from tests.conftest import shared_path
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write


def rows(trace: Trace) -> dict[str, tuple[int, int | None]]:
    return {row.name: (row.calls, row.total_ns) for row in hotspots.by_category(trace).rows}


def test_operators_of_a_cpu_run_have_categories_by_their_own_time():
    scene = Scene()
    scene.op("aten::linear", 0, 100)
    scene.op("aten::addmm", 10, 90)
    scene.op("aten::softmax", 100, 130)
    assert rows(scene.build()) == {"gemm": (2, 100), "normalisation": (1, 30)}


def test_they_are_left_to_kernels_where_a_device_works():
    scene = Scene()
    scene.op("aten::addmm", 10, 90)
    scene.kernel(20, 30, name="Cijk_Ailk_Bljk")
    assert rows(scene.build()) == {"gemm": (1, 10)}


def test_a_trace_without_either_has_no_rows():
    assert rows(Scene().build()) == {}


def test_categories_of_the_operators_of_a_file_sum_to_all_of_them(tmp_path: Path):
    """The operators alone of a file in which a device works, as where only they were recorded."""
    names = ("aten::addmm", "aten::_softmax", "aten::layer_norm", "aten::convolution", "my::fused")
    events = [
        event
        for number, name in enumerate(names, 1)
        for event in (
            op(name, 100 * number, 60 + number, number),
            op("aten::empty", 100 * number + 5, 10, 50 + number),
            launch("cudaLaunchKernel", 100 * number + 20, 5, number),
            kernel("k", 100 * number + 30, 40, correlation=number),
        )
    ]
    trace = load([write(tmp_path / "operators.pt.trace.json", document(events))]).trace
    assert sum(calls for calls, _ in rows(trace).values()) == len(names)  # of kernels
    on_host = replace(trace, kernels=Kernels.empty(), copies=Copies.empty())
    by_category = hotspots.by_category(on_host)
    assert by_category.total_ns == hotspots.by_op(on_host).total_ns
    assert {row.name: row.total_ns for row in by_category.rows} == {
        "gemm": 51_000,
        "normalisation": (52 + 53) * 1_000,
        "conv": 54_000,
        "other": (55 + 5 * 10) * 1_000,
    }


def test_categories_of_recorded_operators_sum_to_all_of_them():
    trace = load([shared_path("fixtures/kineto/h100_bert_small.json.gz")]).trace
    on_host = replace(trace, kernels=Kernels.empty(), copies=Copies.empty())
    by_category = hotspots.by_category(on_host)
    assert by_category.total_ns == hotspots.by_op(on_host).total_ns
    assert {row.name for row in by_category.rows} >= {"gemm", "attention", "normalisation"}
