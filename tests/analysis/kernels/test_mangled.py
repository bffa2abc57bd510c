"""What mangled names say, and which demangled ones are of the same kernels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.compare.runs import compare
from profharness.analysis.kernels.hotspots import by_kernel
from profharness.analysis.kernels.mangled import one_spelling, readable
from profharness.analysis.summarise import summarise_trace
from tests.analysis.scene import Scene


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


PAIRS = [
    ("_Z6kernelPfi", "kernel(float*, int)"),
    (
        "_ZN2my3addIfLi4ELb1EEEvPT_S2_",
        "void my::add<float, 4, true>(float*, float*)",
    ),
    (
        "_ZN2my12_GLOBAL__N_15applyINS_5sumOpIdjEENS_4ModeE",  # cut off: no name of both
        "",
    ),
    (
        "_ZN2my12_GLOBAL__N_15applyINS_5SumOpIdjEELNS_4ModeE2EEEvT_PKS3_m",
        (
            "void my::(anonymous namespace)::apply<my::SumOp<double, unsigned int>, (my::Mode)2>"
            "(my::SumOp<double, unsigned int>, my::SumOp<double, unsigned int> const*, unsigned long)"
        ),
    ),
    (
        "_ZN2my3runILi2EZNS_4loopERNS_4IterEENKUlvE_clEvEUlfE0_EEviT0_",
        (
            "void my::run<2, my::loop(my::Iter&)::{lambda()#1}::operator()() const::{lambda(float)#2}>"
            "(int, my::loop(my::Iter&)::{lambda()#1}::operator()() const::{lambda(float)#2})"
        ),
    ),
]
MANGLED, PLAIN = PAIRS[1]


@pytest.mark.parametrize(("mangled", "plain"), PAIRS)
def test_a_mangled_name_is_that_of_its_demangled_form(mangled: str, plain: str) -> None:
    every = [name for pair in PAIRS for name in pair if name]
    expected = {mangled: plain} if plain else {}
    assert one_spelling([mangled, plain]) == expected
    assert one_spelling(every).get(mangled) == (plain or None)


@pytest.mark.parametrize(
    "other",
    [
        "void my::add<double, 4, true>(double*, double*)",
        "void my::add<float, 8, true>(float*, float*)",
        "void my::add<float, 4, false>(float*, float*)",
        "void other::add<float, 4, true>(float*, float*)",
        "void my::add<float, 4>(float*, float*)",
        "my::add",
    ],
)
def test_another_instance_of_a_template_is_another_kernel(other: str) -> None:
    assert one_spelling([MANGLED, other]) == {}
    assert one_spelling([MANGLED, other, PLAIN]) == {MANGLED: PLAIN}


@given(st.lists(st.text(alphabet="_ZNILESTU0123456789abTfl<>(), ", max_size=40), max_size=6))
def test_any_names_are_answered(names: list[str]) -> None:
    found = one_spelling([*names, *(f"_Z{name}" for name in names)])
    assert all(one.startswith("_Z") and not other.startswith("_Z") for one, other in found.items())


def one_of_each(*names: str) -> Scene:
    scene = Scene()
    for at, name in enumerate(names):
        scene.kernel(100 * at, 100 * at + 40, scene.launch(100 * at - 20, 100 * at - 10), name=name)
    return scene


def test_hotspots_have_one_row_for_both_forms() -> None:
    (row,) = by_kernel(one_of_each(PLAIN, MANGLED, PLAIN).build()).rows
    assert (row.name, row.calls, row.total_ns) == (PLAIN, 3, 120)


def test_a_comparison_joins_both_forms() -> None:
    sides = [summarise_trace(one_of_each(name, "copy").build(), name) for name in (MANGLED, PLAIN)]
    (table,) = (table for table in compare(*sides).hotspots if table.by == "kernel")
    assert {row.name for row in table.rows} == {PLAIN, "copy"}
    assert all(row.calls_a == row.calls_b == 1 for row in table.rows)
