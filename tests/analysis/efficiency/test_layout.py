"""Transposes under convolutions; casts and copies of the operands of products."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profharness.trace.columns.table import NULL
from tests.analysis.efficiency.device_work import MI300X, DeviceWork, found_in

NCHW = [3136 * 64, 3136, 56, 1]
CHANNELS_LAST = [3136 * 64, 1, 56 * 64, 64]
HALF = "c10::BFloat16"
PRODUCT = "Cijk_Alik_Bljk_BBS_MT128x128x64_MI16x16x1"
COPY = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>>(int)"
)


def convolution(transposes, strides=NCHW, workspace=0, others=0):
    """A convolution of 8 us beside its transposes and its workspace, inside of another operator;
    then other kernels.
    """
    made = DeviceWork(MI300X)
    tensors = ((HALF, [8, 64, 56, 56]), (HALF, [64, 64, 3, 3]))
    made.op("aten::conv2d", *tensors, length=2000)
    recorded = [strides, [576, 9, 3, 1]] if strides else None
    op = made.op("aten::miopen_convolution", *tensors, strides=recorded)
    made.kernel("batched_transpose_32x32_half", transposes, op)
    if workspace:
        made.kernel("SubTensorOpWithCastTensor1d", workspace, op)
    made.kernel("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32", 8000, op)
    if others:
        made.kernel("relu", others)
    return made.build()


def test_transposes_under_a_convolution_of_contiguous_tensors():
    (found,) = found_in(convolution(6000, workspace=2000), "layout-under-convolutions")
    assert found.severity == "info"
    assert found.figures == {
        "layout_share": 6 / 16,
        "layout_ns": 6000,
        "others_ns": 2000,
        "operators_ns": 16000,
        "kernel_time_share": 6 / 16,
        "contiguous_share": 1.0,
    }
    assert "transposes take 37.5 % of the device time of convolutions" in found.message
    assert "in 100.0 % of that time the recorded inputs are contiguous (NCHW)" in found.message
    assert found.message.endswith("in 0.0 % channels_last")
    assert "channels_last" in found.advice


def test_inputs_in_channels_last_and_inputs_without_strides_are_told():
    (found,) = found_in(convolution(6000, CHANNELS_LAST), "layout-under-convolutions")
    assert found.figures["contiguous_share"] == 0.0
    assert (
        "in 100.0 % channels_last: most are channels_last already, so that on AMD "
        "PYTORCH_MIOPEN_SUGGEST_NHWC=1 is left to set; where it is, or elsewhere, the library has "
        "no kernel in that order"
    ) in found.message
    assert "where they are contiguous" in found.advice
    (found,) = found_in(convolution(6000, None), "layout-under-convolutions")
    assert "contiguous_share" not in found.figures
    assert "NCHW" not in found.message


def test_copies_and_fills_that_are_no_kernels_count_beside_the_transposes():
    made = DeviceWork(MI300X)
    op = made.op("aten::convolution_backward", (HALF, [8, 64, 56, 56]))
    made.kernel("nchwToNhwcKernel", 10_000, op)
    made.kernel("sm80_xmma_dgrad_implicit_gemm", 10_000, op)
    made.copy(20_000, op, kind="fill")
    made.copy(10_000, op)
    made.copy(10_000, made.op("aten::zero_", (HALF, [4, 4])), kind="fill")
    (found,) = found_in(made.build(), "layout-under-convolutions")
    assert found.figures["operators_ns"] == 50_000
    assert (found.figures["layout_share"], found.figures["others_ns"]) == (0.2, 30_000)
    assert "casts, copies and fills beside them 60.0 %" in found.message


def test_few_transposes_and_transposes_elsewhere_are_no_finding():
    assert found_in(convolution(300), "layout-under-convolutions") == []
    assert found_in(convolution(6000, others=600_000), "layout-under-convolutions") == []
    made = DeviceWork(MI300X)
    made.kernel("batched_transpose_32x32_half", 9000, made.op("aten::permute"))
    made.kernel("igemm_fwd_gtcx3", 1000, made.op("aten::convolution"))
    fused = "triton_poi_fused_convolution_transpose_3"
    made.kernel("batched_transpose_32x32_half", 9000, made.op(fused, start=20_000))
    made.kernel("ConvFwd<Transposed, nchw_to_nhwc>", 5000, made.op("aten::conv2d", start=30_000))
    assert found_in(made.build(), "layout-under-convolutions") == []


def autocast(casts, others=0):
    """A linear operator that casts its weight: `linear > to > _to_copy > copy_`, then `mm`."""
    made = DeviceWork(MI300X)
    made.op("aten::linear", ("float", [64, 512]), ("float", [512, 512]), length=4000)
    made.op("aten::_to_copy", ("float", [512, 512]), length=1500)
    cast = made.op("aten::copy_", (HALF, [512, 512]), ("float", [512, 512]), length=1000)
    product = made.op("aten::mm", (HALF, [64, 512]), (HALF, [512, 512]), start=2000, length=500)
    made.kernel(COPY, casts, cast)
    made.kernel(PRODUCT, 8000, product)
    if others:
        made.kernel("relu", others)
    return made.build()


def test_casts_inside_of_a_product():
    (found,) = found_in(autocast(2000), "copies-under-products")
    assert found.severity == "info"
    assert found.figures == {
        "copies_share": 0.2,
        "casts_share": 0.2,
        "copies_ns": 2000,
        "operators_ns": 10000,
        "kernel_time_share": 0.2,
    }
    assert "0.0 % of them run just before the product" in found.message
    assert found_in(autocast(300), "copies-under-products") == []
    assert found_in(autocast(2000, others=200_000), "copies-under-products") == []


def test_copies_inside_of_a_product_that_are_no_kernels():
    made = DeviceWork(MI300X)
    made.op("aten::linear", ("float", [64, 512]), ("float", [512, 512]), length=4000)
    copy = made.op("aten::copy_", (HALF, [512, 512]), (HALF, [512, 512]), length=1000)
    fill = made.op("aten::zero_", (HALF, [64, 512]), start=1000, length=500)
    operands = ((HALF, [64, 512]), (HALF, [512, 512]))
    product = made.op("aten::mm", *operands, start=2000, length=500)
    made.copy(2000, copy)
    made.copy(500, fill, kind="fill")
    made.copy(500, product)
    made.kernel(PRODUCT, 7000, product)
    (found,) = found_in(made.build(), "copies-under-products")
    assert (found.figures["copies_ns"], found.figures["operators_ns"]) == (2000, 10_000)
    assert (found.figures["copies_share"], found.figures["casts_share"]) == (0.2, 0.0)


def fed(*copied, into=HALF, between=False, stream=0):
    """Copies on a stream into tensors of these extents, then the product of [64, 512] and
    [512, 256] on stream 0.
    """
    made = DeviceWork(MI300X)
    for number, shape in enumerate(copied):
        copy = made.op("aten::copy_", (into, shape), (HALF, shape), start=2000 * number)
        made.kernel(COPY, 2000 // len(copied), copy, stream=stream)
    if between:
        made.kernel("relu", 100, made.op("aten::relu", (HALF, [4, 4]), start=10_000))
    product = made.op("aten::mm", (HALF, [64, 512]), (HALF, [512, 256]), start=20_000)
    made.kernel(PRODUCT, 8000, product)
    return made.build()


@pytest.mark.parametrize(
    "copied", [([64, 512],), ([8, 8, 512],), ([512, 256],), ([64, 512], [512, 256])], ids=str
)
def test_copies_just_before_a_product_of_as_many_elements_as_its_operands(copied):
    (found,) = found_in(fed(*copied), "copies-under-products")
    assert (found.figures["copies_ns"], found.figures["copies_share"]) == (2000, 0.2)
    assert found.figures["casts_share"] == 0.0
    assert "100.0 % of them run just before the product" in found.message


def test_a_cast_just_before_a_product():
    (found,) = found_in(fed([64, 512], into="float"), "copies-under-products")
    assert found.figures["casts_share"] == found.figures["copies_share"] == 0.2


def test_other_copies_are_no_operands():
    assert found_in(fed([64, 511]), "copies-under-products") == []
    assert found_in(fed([64, 512], between=True), "copies-under-products") == []
    assert found_in(fed([64, 512], stream=1), "copies-under-products") == []


def test_a_copy_on_another_device_is_no_operand_where_streams_are_not_known():
    trace = fed([64, 512])
    for devices, findings in (([0, 0], 1), ([0, 1], 0)):
        kernels = trace.kernels.with_columns(stream=NULL, device=devices)
        apart = replace(trace, kernels=kernels, devices=(MI300X, replace(MI300X, index="1")))
        assert len(found_in(apart, "copies-under-products")) == findings


def test_what_a_product_copies_itself_is_the_added_matrix():
    made = DeviceWork(MI300X)
    op = made.op("aten::addmm", (HALF, [512]), (HALF, [64, 512]), (HALF, [512, 512]))
    made.kernel(COPY, 2000, op)
    made.kernel(PRODUCT, 8000, op)
    assert found_in(made.build(), "copies-under-products") == []
