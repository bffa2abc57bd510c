"""Tiles by the names of kernels, and the part of them that lies outside of a product."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.efficiency.tiles import Tile, tile_of, wasted_share

EXTENTS = st.integers(1, 5000)
SIDES = st.sampled_from([16, 32, 48, 64, 96, 128, 224, 256, 448])


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1", 256, 128),
        ("Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x448x64_MI16x16x1_SN", 16, 448),
        ("Cijk_Ailk_Bjlk_SB_MT64x16x16_SE_K1", 64, 16),
        ("ampere_sgemm_128x64_nn", 128, 64),
        ("ampere_sgemm_32x32_sliced1x4_tn", 32, 32),
        ("volta_fp16_s884gemm_fp16_128x256_ldg8_f2f_tn", 128, 256),
        ("ampere_bf16_s16816gemm_bf16_64x128_sliced1x2_ldg8_f2f_stages_64x5_tn", 64, 128),
        ("turing_h1688gemm_256x64_ldg8_stages_32x1_tn", 256, 64),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>(P)", 64, 64),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)", 128, 32),
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn>",
            32,
            32,
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x128_64x6_tn>",
            64,
            128,
        ),
        (
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize160x128x32_stage4_warpsize2x2x1_kernel",
            160,
            128,
        ),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x256x64_warpgroupsize1x1x1_bias",
            64,
            256,
        ),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT", 256, 128),
        ("nvjet_sm100_tst_128x64_64x9_4x1_v_bz_TNN", 128, 64),
        (
            "cutlass3x_sm90_tensorop_s64x256x16gemm_f16_f16_f32_void_f16_128x256x64_2x1x1_0_tnn",
            128,
            256,
        ),
        (
            "void kentry<1, ck_tile::GemmKernel<ck_tile::TileGemmShape<ck_tile::sequence<256, 128, 32>",
            256,
            128,
        ),
    ],
)
def test_each_library_names_its_tile(name, rows, columns):
    assert tile_of(name) == Tile(rows, columns)


@pytest.mark.parametrize(
    "name",
    [
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>(P)",
        "splitKreduce_kernel<32, 16, int, float>",
        "void at::native::elementwise_kernel<128, 4>(int)",
        "batched_transpose_32x32_half",
        "Cijk_Alik_Bljk_BBS_BH_GSU4_PostGSU",
        "triton_tem_fused_mm_0",
        "gemm",
        "",
    ],
)
def test_a_name_without_a_tile_gives_none(name):
    assert tile_of(name) is None


def by_hand(m, n, rows, columns):
    """Tiles counted one by one, either way round."""
    areas = [
        len(range(0, m, down)) * down * len(range(0, n, right)) * right
        for down, right in ((rows, columns), (columns, rows))
    ]
    return 1 - m * n / min(areas)


@given(EXTENTS, EXTENTS, SIDES, SIDES)
def test_what_lies_outside(m, n, rows, columns):
    of = [np.array([value]) for value in (m, n, rows, columns)]
    share = wasted_share(*of)[0]
    assert share == pytest.approx(by_hand(m, n, rows, columns), abs=1e-12)
    assert -1e-12 <= share < 1
    assert wasted_share(of[1], of[0], of[2], of[3])[0] == pytest.approx(share, abs=1e-12)


def test_whole_tiles_waste_nothing():
    m, n = np.array([256, 512, 1]), np.array([128, 256, 1])
    share = wasted_share(m, n, np.array([256, 256, 16]), np.array([128, 128, 16]))
    assert share.tolist() == [0.0, 0.0, 1 - 1 / 256]
