from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.report.text.folding import cut_middle, distinct_names, fold_kernel_name
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
