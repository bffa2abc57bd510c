"""fp32 products on devices that could round their operands."""

from __future__ import annotations

import pytest

from tests.analysis.efficiency.device_work import A100, MI210, MI300X, DeviceWork, found_in

N = 4096
SGEMM, TF32 = "ampere_sgemm_128x64_nn", "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4"
BF16 = "ampere_bf16_s16816gemm_bf16_128x64_tn"


def products(*kernels, device=A100, others=0):
    """(name, type, ns) of the kernels of one product each, then another kernel of so many ns."""
    made = DeviceWork(device)
    for name, kind, length in kernels:
        made.kernel(name, length, made.op("aten::mm", (kind, [N, N]), (kind, [N, N])))
    if others:
        made.kernel("relu", others)
    return made.build()


@pytest.mark.parametrize(
    ("device", "name", "ratio"),
    [
        (A100, SGEMM, 8.0),
        (MI300X, "Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_MT128x128x16_MI16x16x1", 4.0),
    ],
    ids=["A100", "MI300X"],
)
def test_products_in_full_precision_where_the_device_has_a_faster_one(device, name, ratio):
    (found,) = found_in(products((name, "float", 20_000_000), device=device), "fp32-products")
    assert found.severity == "info"
    assert found.figures["matrix_share"] == found.figures["kernel_time_share"] == 1.0
    assert found.figures["peak_ratio"] == pytest.approx(ratio, rel=0.01)
    assert found.figures["at_most"] == pytest.approx(ratio, rel=0.01)
    assert 'torch.set_float32_matmul_precision("high")' in found.advice
    assert f"TF32 has {ratio:.3g} times their peak" in found.message


def test_the_bytes_of_a_product_bound_what_it_gains():
    moved = 3 * 4 * N * N / 2.039e12 * 1e9
    (found,) = found_in(products((SGEMM, "float", round(moved / 0.5))), "fp32-products")
    assert found.figures["at_most"] == pytest.approx(2.0, rel=0.01)


def test_products_whose_kernels_have_another_name_are_products():
    (found,) = found_in(products(("my_own_kernel", "float", 20_000_000)), "fp32-products")
    assert found.figures["matrix_share"] == 1.0


@pytest.mark.parametrize(
    "trace",
    [
        products((TF32, "float", 10_000_000)),
        products(("Cijk_Ailk_Bljk_S_MX_B_xf32_MT128x128x16", "float", 10_000_000), device=MI300X),
        products((SGEMM, "float", 10_000_000), device=MI210),
        products((BF16, "c10::BFloat16", 10_000_000)),
        products((SGEMM, "float", 8_000_000), (TF32, "float", 2_000_000)),
        products((SGEMM, "float", 900_000), (BF16, "c10::BFloat16", 9_100_000)),
        products((SGEMM, "float", 290_000), others=9_710_000),
    ],
    ids=[
        "TF32",
        "XF32",
        "no such peak",
        "bf16",
        "allowed elsewhere",
        "few of the products",
        "little of the time",
    ],
)
def test_products_that_are_rounded_or_cannot_be_are_no_finding(trace):
    assert found_in(trace, "fp32-products") == []
