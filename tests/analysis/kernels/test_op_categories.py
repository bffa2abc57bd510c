"""By category where no device works: operators' own time on the host."""

from __future__ import annotations

from dataclasses import replace

from profharness.analysis.kernels import hotspots
from profharness.trace.model import Copies, Kernels, Trace
from profharness.understand.load import load
from tests.analysis.scene import Scene
from tests.conftest import shared_path


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


def test_categories_of_recorded_operators_sum_to_all_of_them():
    trace = load([shared_path("fixtures/kineto/h100_bert_small.json.gz")]).trace
    on_host = replace(trace, kernels=Kernels.empty(), copies=Copies.empty())
    by_category = hotspots.by_category(on_host)
    assert by_category.total_ns == hotspots.by_op(on_host).total_ns
    assert {row.name for row in by_category.rows} >= {"gemm", "attention", "normalisation"}
