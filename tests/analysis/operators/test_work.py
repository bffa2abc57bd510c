from __future__ import annotations

import json

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.operators.work import of_kernels, work_of
from tests.analysis.scene import Scene


def asked(name, dims, kinds):
    return work_of(name, json.dumps(dims), json.dumps(kinds))


BF16, F32 = "c10::BFloat16", "float"


@pytest.mark.parametrize(
    ("name", "dims", "kinds", "flops", "moved"),
    [
        ("aten::mm", [[3, 5], [5, 7]], [F32, F32], 2 * 3 * 5 * 7, 4 * (15 + 35 + 21)),
        (
            "aten::addmm",
            [[7], [3, 5], [5, 7], [], []],
            [BF16, BF16, BF16, "Scalar", "Scalar"],
            210,
            2 * (7 + 15 + 35 + 21),
        ),
        ("aten::bmm", [[2, 3, 5], [2, 5, 7]], [F32, F32], 420, 4 * (30 + 70 + 42)),
        ("aten::mul", [[4, 1], [4, 6]], [F32, F32], None, 4 * (4 + 24 + 24)),
        ("aten::add_", [[4, 6], [6], []], [F32, F32, "Scalar"], None, 4 * (24 + 6 + 24)),
        ("aten::eq", [[4, 6], []], ["long int", "Scalar"], None, 8 * 24 + 24),
        ("aten::copy_", [[4, 6], [4, 6], []], [BF16, F32, "Scalar"], None, 2 * 24 + 4 * 24),
        ("aten::fill_", [[4, 6], []], [F32, "Scalar"], None, 96),
        ("aten::sum", [[4, 6], []], [F32, ""], None, 96),
        (
            "aten::native_layer_norm",
            [[4, 6], [], [6], [6], []],
            [F32, "ScalarList", F32, F32, "Scalar"],
            None,
            4 * (24 + 12 + 24),
        ),
        ("triton_poi_fused_add_0", [[8], [8], [8], []], [BF16, BF16, BF16, "Scalar"], None, 48),
    ],
)
def test_work_worked_out_by_hand(name, dims, kinds, flops, moved):
    found = asked(name, dims, kinds)
    assert found.flops == flops
    assert found.low_bytes == moved


@pytest.mark.parametrize(
    ("name", "dims", "kinds"),
    [
        (
            "aten::miopen_convolution",
            [[1, 3, 8, 8], [4, 3, 3, 3]],
            [F32, F32],
        ),  # strides are not recorded
        ("aten::cat", [[[2, 3], [2, 3]], []], ["TensorList", "Scalar"]),
        ("aten::mm", [[3, 5]], [F32]),
        ("aten::mm", [[3, 5], [4, 7]], [F32, F32]),
        ("aten::index_select", [[5, 5], [], [3]], [F32, "Scalar", "long int"]),
        ("aten::add", [], []),
    ],
)
def test_what_has_no_formula_says_nothing(name, dims, kinds):
    found = asked(name, dims, kinds)
    assert (found.flops, found.low_bytes) == (None, None)


def test_an_operator_counts_once_over_its_kernels():
    scene = Scene()
    first = scene.op("aten::mm", 0, 10)
    scene.op("aten::relu_but_unknown", 20, 30)
    scene.kernel(0, 30, op=first)
    scene.kernel(40, 50, op=first)
    scene.kernel(60, 70)
    trace = scene.build()
    shapes, types = (trace.strings.code(text) for text in ("[[3,5],[5,7]]", '["float","float"]'))
    trace = type(trace)(
        **{**vars(trace), "ops": trace.ops.with_columns(shapes=shapes, dtype=types)}
    )
    found = of_kernels(trace)
    assert found.flops[:2].sum() == pytest.approx(210)
    assert found.flops[0] == pytest.approx(210 * 0.75)  # by time
    assert np.isnan(found.flops[2])
    assert (found.dtypes, found.dtype.tolist()) == (("fp32",), [0, 0, -1])


@pytest.mark.parametrize(
    ("kernels", "kind", "dtype"),
    [
        (
            ("cutlass_80_tensorop_s1688gemm_64x64_16x6_nt_align4", "splitKreduce_kernel"),
            F32,
            "tf32",
        ),
        (("xmma_new::gemm::kernel<Ampere_hmma_tf32_traits<unsigned int, float>>",), F32, "tf32"),
        (
            ("cutlass_80_tensorop_s1688f32gemm_64x64", "ampere_sgemm_128x64_nn"),
            F32,
            "fp32",
        ),  # three products for fp32's own precision
        (("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64",), BF16, "bf16"),
    ],
)
def test_the_type_of_a_product_is_that_of_its_operands_unless_the_kernel_says_tf32(
    kernels, kind, dtype
):
    scene = Scene()
    product = scene.op("aten::mm", 0, 10)
    for at, name in enumerate(kernels):
        scene.kernel(10 * at, 10 * at + 5, name=name, op=product)
    trace = scene.build()
    trace = type(trace)(
        **{
            **vars(trace),
            "ops": trace.ops.with_columns(
                shapes=trace.strings.code("[[3,5],[5,7]]"),
                dtype=trace.strings.code(json.dumps([kind, kind])),
            ),
        }
    )
    found = of_kernels(trace)
    assert {found.dtypes[code] for code in found.dtype.tolist()} == {dtype}


def test_an_algorithm_that_multiplies_less_is_told_apart_for_all_kernels_of_its_operator():
    scene = Scene()
    first, second = scene.op("aten::cudnn_convolution", 0, 10), scene.op("aten::mm", 20, 30)
    scene.kernel(0, 5, name="void cudnn::winograd_nonfused::winogradForwardData4x4", op=first)
    scene.kernel(5, 9, name="volta_sgemm_64x64_nt", op=first)
    scene.kernel(20, 25, name="volta_sgemm_64x64_nt", op=second)
    scene.kernel(40, 45, name="winograd_of_no_operator")
    trace = scene.build()
    inputs = {
        "shapes": [json.dumps([[1, 2, 8, 8], [4, 2, 3, 3], *[[]] * 7]), "[[3,5],[5,7]]"],
        "dtype": [
            json.dumps([F32, F32, *["ScalarList"] * 3, *["Scalar"] * 4]),
            f'["{F32}","{F32}"]',
        ],
        "concrete": [
            json.dumps(["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "False"]),
            "",
        ],
    }
    codes = {
        name: np.array([trace.strings.code(text) for text in texts], np.int32)
        for name, texts in inputs.items()
    }
    trace = type(trace)(**{**vars(trace), "ops": trace.ops.with_columns(**codes)})
    found = of_kernels(trace)
    assert found.flops[:2].sum() == pytest.approx(2 * 64 * 4 * 2 * 9)
    assert found.fewer.tolist() == [True, True, False, False]


def test_real_matrix_products_stay_below_the_peak_and_streams_below_the_memory(shared):
    trace = readers.read(shared / "fixtures/kineto/h100_qwen0.5b_prefill.json.gz")
    found = of_kernels(trace)
    seconds = trace.kernels.dur_ns / 1e9
    assert np.nanmax(found.flops / seconds) == pytest.approx(0.70 * 989.4e12, rel=0.02)
    assert 0.9 < np.nanmax(found.low_bytes / seconds) / 3352e9 < 1.0
    known = np.isfinite(found.flops)
    assert set(found.dtypes) == {"bf16", "fp32"}
    assert trace.kernels.dur_ns[known].sum() / trace.kernels.dur_ns.sum() == pytest.approx(
        0.255, abs=0.001
    )
