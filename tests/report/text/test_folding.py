from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.errors import InputError
from profharness.report.text.folding import cut_middle, distinct_names, fold_kernel_name
from profharness.trace.wanted import Wanted
from tests.report.samples import KERNELS


def test_template_and_parameter_lists_fold() -> None:
    folded = [fold_kernel_name(name) for name, *_ in KERNELS]
    assert folded[1] == "at::native::vectorized_gather_kernel<…>"
    assert folded[2] == "at::native::reduce_kernel<…>"
    assert folded[6] == "(anonymous namespace)::softmax_warp_forward<…>"


def test_plain_names_stay() -> None:
    assert fold_kernel_name("__amd_rocclr_copyBuffer") == "__amd_rocclr_copyBuffer"
    assert (
        fold_kernel_name("MIOpenBatchNormFwdInferSpatialEst.kd")
        == "MIOpenBatchNormFwdInferSpatialEst.kd"
    )


def test_unbalanced_names_are_left_alone() -> None:
    assert fold_kernel_name("broken<int, (") == "broken<int, ("


def test_names_that_fold_alike_keep_their_arguments() -> None:
    names = [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> "
            ">(int)"
        ),
        "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float> >(int)",
        "gemm<8>(int)",
    ]
    assert distinct_names(names) == [
        "vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >",
        "vectorized_elementwise_kernel<4, MulFunctor<float> >",
        "gemm<…>",
    ]
    assert all(len(name) <= 40 for name in distinct_names(names, 40))


def test_names_that_differ_far_behind_show_where() -> None:
    names = [
        f"Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT{size}x{size}x64_MI16x16x1_SN_LDSB1_AFC1_AFEM8_WG16_4_4"
        for size in (16, 128, 256)
    ]
    shown = distinct_names(names, 40)
    assert [name.partition("…")[2][:6] for name in shown] == ["_MT16x", "_MT128", "_MT256"]
    assert len(set(shown)) == 3
    assert all(len(name) <= 40 for name in shown)


@given(
    st.lists(st.text(alphabet="ab<>:(), ", min_size=1, max_size=60), max_size=6),
    st.integers(min_value=16, max_value=40),
)
def test_any_names_stay_within_the_width(names: list[str], width: int) -> None:
    shown = distinct_names(names, width)
    assert len(shown) == len(names)
    assert all(len(name) <= width for name in shown)
    assert len(set(shown)) == len(set(names))


def test_scopes_go_before_the_name_is_cut() -> None:
    assert fold_kernel_name("at::native::reduce_kernel<512, 1>(int)", 20) == "reduce_kernel<…>"


@given(st.text(min_size=1, max_size=200), st.integers(min_value=8, max_value=80))
def test_no_name_exceeds_the_width_or_vanishes(name: str, width: int) -> None:
    assert 0 < len(fold_kernel_name(name, width)) <= max(width, 1)


@given(st.text(max_size=200), st.integers(min_value=3, max_value=80))
def test_a_cut_keeps_both_ends(text: str, width: int) -> None:
    cut = cut_middle(text, width)
    assert len(cut) <= width
    assert cut[:1] == text[:1]
    assert cut[-1:] == text[-1:]


def _kernel_names(shared: Path) -> list[list[str]]:
    """The names of the kernels of every recorded file that has some."""
    files = [
        path
        for folder in ("kineto", "rocm")
        for path in sorted((shared / "fixtures" / folder).rglob("*"))
        if path.is_file() and "expected" not in path.parts
    ]
    tables = []
    for path in files:
        try:
            trace = readers.read(path, wanted=Wanted.TIMES)
        except InputError:
            continue
        tables.append([trace.strings[code] for code in set(trace.kernels.name.tolist())])
    return [names for names in tables if names]


@pytest.mark.slow
def test_no_two_kernels_of_a_recorded_file_look_alike(shared: Path) -> None:
    tables = _kernel_names(shared)
    assert len(tables) > 40
    together = sorted({name for names in tables for name in names})
    for names in (*tables, together):
        for width in (24, 48, 72, 100):
            shown = distinct_names(names, width)
            assert len(set(shown)) == len(names)
            assert all(len(text) <= width for text in shown)


def test_the_tile_of_a_product_stays() -> None:
    tensile = (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1_AFC1_WG16_4_4"
    )
    assert "_MT256x128x64" in fold_kernel_name(tensile)
    assert "_MT256x128x64" in fold_kernel_name(tensile, 30)
    alike = [f"{tensile}_{last}" for last in ("LPA16", "LPA32")]
    shown = distinct_names(alike, 48)
    assert all("_MT256x128x64" in text for text in shown)
    assert [text[-6:] for text in shown] == ["_LPA16", "_LPA32"]


def test_composable_kernels_show_tile_and_layout() -> None:
    name = (
        "void ck_tile::kentry<1, ck_tile::BatchedGemmKernel<ck_tile::Partitioner<"
        "ck_tile::TileGemmShape<ck_tile::sequence<256, 256, 64>, ck_tile::sequence<2, 2, 1> > >, "
        "ck_tile::Traits<ck_tile::tensor_layout::gemm::RowMajor, "
        "ck_tile::tensor_layout::gemm::ColumnMajor, ck_tile::tensor_layout::gemm::RowMajor> > >(int)"
    )
    assert fold_kernel_name(name) == "ck_tile::BatchedGemmKernel<256x256x64 RCR …>"
    other = name.replace("256, 256, 64", "128, 128, 32")
    assert distinct_names([name, other]) == [
        "ck_tile::BatchedGemmKernel<256x256x64 RCR …>",
        "ck_tile::BatchedGemmKernel<128x128x32 RCR …>",
    ]
    mangled = (
        "_ZN2ck27kernel_gemm_xdl_cshuffle_v3INS_28GridwiseGemm_xdl_cshuffle_v3INS_13tensor_layout4gemm"
        "8RowMajorELNS_18GemmSpecializationE7ELi256ELi128ELi64ELi32ELi8ELi8EEEEEvv"
    )
    assert fold_kernel_name(mangled) == "ck::kernel_gemm_xdl_cshuffle_v3<128x64x32 …>"


def test_kernels_that_differ_in_parameters_only_are_told_apart() -> None:
    assert distinct_names(["f(int)", "f(float)"]) == ["f(int)", "f(float)"]
