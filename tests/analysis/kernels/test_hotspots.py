from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels import hotspots
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Kernels, Ops, Source, Strings, Trace
from tests.analysis.scene import Scene

GEMM = "Cijk_Alik_Bljk_BBS_BH_MT128x128x64"
COPY = "__amd_rocclr_copyBuffer"


def small() -> Scene:
    scene = Scene()
    op = scene.op("aten::mm", 0, 100)
    scene.kernel(0, 30, name=GEMM, workgroups=304, op=op)
    scene.kernel(30, 40, name=GEMM, workgroups=304, op=op)
    scene.kernel(40, 50, name=GEMM, workgroups=10)
    scene.kernel(50, 55, name=COPY)
    scene.copy(60, 67)
    return scene


def test_by_kernel_lists_exact_figures_and_leaves_copies_out():
    table = hotspots.by_kernel(small().build())
    assert (table.by, table.total_ns, len(table.rows)) == ("kernel", 55, 2)
    row = table.rows[0]
    assert (
        row.name,
        row.category,
        row.calls,
        row.total_ns,
        row.min_ns,
        row.max_ns,
        row.median_ns,
    ) == (GEMM, "gemm", 3, 50, 10, 30, 10.0)
    assert (row.mean_ns, row.std_ns) == (
        pytest.approx(50 / 3),
        pytest.approx(statistics.stdev([30, 10, 10])),
    )
    assert row.share == 50 / 55
    assert (row.workgroups, row.workgroup_size, row.op) == (304, (64, 1, 1), "aten::mm")
    assert (
        table.rows[1].workgroups,
        table.rows[1].workgroup_size,
        table.rows[1].op,
        table.rows[1].std_ns,
    ) == (None, None, None, 0.0)


def test_by_category_puts_copy_kernels_and_copies_together():
    table = hotspots.by_category(small().build())
    assert [(row.name, row.calls, row.total_ns) for row in table.rows] == [
        ("gemm", 3, 50),
        ("copy", 2, 12),
    ]
    assert table.total_ns == 62


def test_by_op_takes_children_off_and_shows_kernel_time_beside():
    scene = small()
    scene.op("aten::copy_", 10, 30)
    scene.op("aten::empty", 15, 20)
    scene.op("aten::copy_", 90, 120)
    scene.op("aten::copy_", 100, 110, tid=2)
    table = hotspots.by_op(scene.build())
    rows = {row.name: row for row in table.rows}
    assert rows["aten::mm"].total_ns == 100 - 20 - 10
    assert rows["aten::copy_"].total_ns == (20 - 5) + 30 + 10
    assert rows["aten::empty"].total_ns == 5
    assert (rows["aten::mm"].kernel_ns, rows["aten::copy_"].kernel_ns) == (40, 0)
    assert [rows[name].category for name in ("aten::mm", "aten::copy_", "aten::empty")] == [
        "gemm",
        "copy",
        "other",
    ]
    assert table.total_ns == 70 + 55 + 5


def test_ops_without_kernels_are_the_default_and_claim_no_kernel_time():
    scene = Scene()
    scene.op("/conv/Conv_kernel_time", 0, 10)
    table = hotspots.default(scene.build())
    assert (table.by, table.rows[0].kernel_ns) == ("op", None)
    assert hotspots.default(small().build()).by == "kernel"
    assert (
        hotspots.default(Trace(sources=(Source("e", "kineto"),), strings=Strings())).by == "kernel"
    )


def test_equal_totals_are_sorted_by_name():
    scene = Scene()
    for name in ("b", "a", "c"):
        scene.kernel(0, 10, name=name)
    assert [row.name for row in hotspots.by_kernel(scene.build()).rows] == ["a", "b", "c"]


def test_the_table_names_its_pass():
    scene = Scene(sources=(Source("a.json", "kineto", pass_name="torch"),))
    scene.kernel(0, 10)
    assert hotspots.by_kernel(scene.build()).pass_name == "torch"


@pytest.mark.parametrize("by", ["kernel", "op", "category"])
def test_an_empty_trace_gives_an_empty_table(by):
    table = hotspots.grouped(Trace(sources=(Source("e", "kineto"),), strings=Strings()), by)
    assert (table.by, table.total_ns, table.rows) == (by, 0, ())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**9)), min_size=1, max_size=50))
def test_totals_equal_a_plain_sum(found):
    strings = Strings(f"kernel{number}" for number in range(6))
    kernels = Kernels.build(
        start_ns=np.arange(len(found)),
        dur_ns=[dur for _, dur in found],
        name=[name for name, _ in found],
        device=0,
        stream=0,
        source=0,
    )
    table = hotspots.by_kernel(
        Trace(
            sources=(Source("a", "kineto"),),
            strings=strings,
            devices=(Device("0"),),
            kernels=kernels,
        )
    )
    assert table.total_ns == sum(dur for _, dur in found)
    for row in table.rows:
        mine = [dur for name, dur in found if f"kernel{name}" == row.name]
        assert (row.calls, row.total_ns, row.median_ns) == (
            len(mine),
            sum(mine),
            statistics.median(mine),
        )
    assert [row.total_ns for row in table.rows] == sorted(
        (row.total_ns for row in table.rows), reverse=True
    )


@st.composite
def nested_spans(draw, low=0, high=200, depth=0):
    """Properly nested spans of one thread as (start, end, depth)."""
    spans = []
    at = low
    while at < high and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start + 1, high))
        spans.append((start, end, depth))
        if depth < 3:
            spans += draw(nested_spans(start, end, depth + 1))
        at = end
    return spans


@given(nested_spans())
def test_own_time_of_operators_sums_to_the_outermost(spans):
    if not spans:
        return
    ops = Ops.build(
        start_ns=[s for s, _, _ in spans],
        dur_ns=[e - s for s, e, _ in spans],
        name=0,
        pid=1,
        tid=1,
        source=0,
    )
    outermost = sum(end - start for start, end, depth in spans if depth == 0)
    assert hotspots.own_ns(ops).sum() == outermost
    assert (hotspots.own_ns(ops) >= 0).all()


def test_a_million_kernels_sum_up():
    rows, random = 1_000_000, np.random.default_rng(1)
    strings = Strings(
        f"void at::native::elementwise_kernel<{number}>(int)" for number in range(300)
    )
    kernels = Kernels.build(
        start_ns=np.cumsum(random.integers(1, 20_000, rows)),
        dur_ns=random.integers(1000, 30_000, rows),
        name=random.integers(0, 300, rows),
        device=0,
        stream=0,
        source=0,
        op=NULL,
    )
    trace = Trace(
        sources=(Source("a", "kineto"),), strings=strings, devices=(Device("0"),), kernels=kernels
    )
    table = hotspots.by_kernel(trace)
    busy = intervals.merge(intervals.lasting(kernels.start_ns, kernels.dur_ns)).total
    assert table.total_ns >= busy > 0
