from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.mangled import readable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_Z6kernelPfi", "kernel"),
        ("_ZN5aiter18fmha_fwd_hd128_fp8E", "aiter::fmha_fwd_hd128_fp8"),
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_8sequenceIJLi1ELi3072EEEELNS_4EnumE0EEEEEvT0_",
            "ck_tile::kentry<1, Rmsnorm2dFwd, sequence, 1, 3072, Enum 0>",
        ),
        ("_ZN2ck12_GLOBAL__N_16kernelIDF16bDF16bLb1EEEvv", "ck::kernel<1>"),
        ("_ZN1aE", "a"),
        # cut off, or no mangled name at all
        ("_ZN50short", "_ZN50short"),
        ("_Zebra", "_Zebra"),
        ("attn_fwd", "attn_fwd"),
        ("", ""),
    ],
)
def test_the_words_of_a_mangled_name(name: str, shown: str) -> None:
    assert readable(name) == shown


@given(st.text(alphabet="_ZNILES0123456789abT", max_size=60).map(lambda text: "_Z" + text))
def test_any_text_gives_a_name(name: str) -> None:
    assert readable(name)
