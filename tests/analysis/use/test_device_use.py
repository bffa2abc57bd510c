"""Operators and kernels against the ceilings, on traces whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profharness import readers
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.hotspots import by_op
from profharness.analysis.use.device_use import (
    MOST_SHAPES,
    NO_KERNELS,
    NO_OPERATORS,
    NO_SHAPES,
    device_use,
)
from profharness.trace.columns.table import NULL
from profharness.trace.model import Kernels
from tests.analysis.kernels.test_roofline import MEASURED, N, mixed, scene, with_ops
from tests.conftest import shared_path

KINETO = shared_path("fixtures/kineto")
PAIR = ([[N, N], [N, N]], ["float", "float"])
FLOPS, BYTES = 2 * N**3, 3 * 4 * N**2


def products(*shares: float):
    """A product of N x N matrices for each share of 40 TFLOP/s, one after the other, each of its
    own operator call.
    """
    made, start = scene(), 0
    for share in shares:
        lasts = round(FLOPS / 40e12 / share * 1e9)
        op = made.op("aten::mm", start, start + 10)
        made.kernel(start + 20, start + 20 + lasts, name="gemm", workgroups=1000, op=op)
        start += lasts + 100
    return with_ops(made, [PAIR] * len(shares))


def use_of(trace):
    return device_use(KernelFacts(trace, Yardstick((MEASURED,))))


def test_a_row_has_the_rates_that_its_calls_reached_together():
    use = use_of(products(0.8, 0.4))
    (row,) = use.operators
    seconds = row.device_ns / 1e9
    assert (row.name, row.calls, row.share) == ("aten::mm", 2, 1.0)
    assert row.flops_per_s == pytest.approx(2 * FLOPS / seconds)
    assert row.bytes_per_s == pytest.approx(2 * BYTES / seconds)
    assert row.intensity == pytest.approx(FLOPS / BYTES)
    assert row.peak_share == pytest.approx(2 / (1 / 0.8 + 1 / 0.4), rel=1e-3)
    assert row.excess_ns == pytest.approx(row.device_ns - 2 * FLOPS / 40e12 * 1e9, rel=1e-3)
    (kernel,) = use.kernels
    assert kernel.flops_per_s == pytest.approx(row.flops_per_s)
    assert kernel.excess_ns == pytest.approx(row.excess_ns, rel=1e-6)
    assert use.needs == ""


def test_ceilings_are_those_of_the_types_that_work_is_done_in():
    use = use_of(products(0.5))
    (roof,) = use.roofs
    assert (roof.value, roof.dtype, roof.source) == (40e12, "fp32", "calibrated GEMM, fp32")
    assert (use.bandwidth.value, use.bandwidth.source) == (1e12, "calibrated copy")


def test_the_most_excess_comes_first():
    use = use_of(mixed())
    excess = [row.excess_ns or 0.0 for row in use.operators]
    assert excess == sorted(excess, reverse=True)
    assert excess[0] > 0


def test_operators_are_told_apart_by_inputs_where_these_are_few():
    few, many = products(0.5), products(*[0.5] * (MOST_SHAPES + 1))
    assert [row.shapes for row in use_of(few).shapes] == ["[[1000, 1000], [1000, 1000]]"]
    codes = [
        many.strings.code(f"[[{N + extra}, {N}], [{N}, {N}]]") for extra in range(len(many.ops))
    ]
    different = replace(many, ops=many.ops.with_columns(shapes=codes))
    assert use_of(different).shapes == ()
    assert len(use_of(different).operators) == 1


def test_what_is_lacking_is_named():
    trace = products(0.5)
    without_shapes = replace(trace, ops=trace.ops.with_columns(shapes=NULL))
    assert use_of(without_shapes).needs == NO_SHAPES
    kernels = trace.kernels.with_columns(op=NULL)
    alone = replace(trace, ops=type(trace.ops).empty(), kernels=kernels)
    assert use_of(alone).needs == NO_OPERATORS
    assert use_of(replace(trace, kernels=Kernels.empty())) is None
    made = scene()
    made.copy(0, 100, made.call("hipMemcpyAsync", 0, 10))
    assert use_of(made.build()).needs == NO_KERNELS


@pytest.mark.parametrize(
    "name", ["mi300x_resnet_act_ckpt_rank0of8", "h100_qwen0.5b_prefill", "a100_nccl_rank0of2"]
)
def test_recorded_rows_agree_with_the_table_by_operator(name, shared):
    trace = readers.read(KINETO / f"{name}.json.gz")
    use, table = use_of(trace), by_op(trace)
    told = {row.name: row for row in table.rows}
    assert use.device_ns == sum(row.device_ns for row in table.rows) + table.device_ns_outside
    for row in use.operators:
        assert row.device_ns >= told[row.name].device_ns
        assert row.calls == told[row.name].calls
    assert use.known is not None
    assert use.known.known_ns <= use.known.matrix_kernel_ns
