from __future__ import annotations

import json

import pytest

from profharness.analysis.operators.calls import Call, Plain, Tensor, TensorList, read_call
from profharness.analysis.operators.element_types import BY_WORD, NOT_TENSORS


def call(dims, kinds, concrete=None, strides=None) -> Call:
    texts = ("" if given is None else json.dumps(given) for given in (concrete, strides))
    found = read_call("aten::anything", json.dumps(dims), json.dumps(kinds), *texts)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("shapes", "types"),
    [
        ("", ""),
        ("[[3]", "[]"),
        ("3", "4"),
        ("[[3]]", ""),
        ("null", "null"),
        pytest.param("[" * 100_000, "[]", id="deep"),
        pytest.param("\ud800", "[]", id="no-character"),
    ],
)
def test_what_is_not_recorded_is_no_call(shapes, types):
    assert read_call("aten::mm", shapes, types) is None


def test_a_kind_that_is_no_text_is_not_known():
    found = call([[2, 3], [4], []], [["float"], {"a": 1}, 7])
    assert [tensor.dims for tensor in found.tensors()] == [(2, 3), (4,)]
    assert found.tensor(0).kind is None


def test_no_tensor_has_an_extent_below_none():
    found = call([[8, -2147483649], [0, 4]], ["float", "float"])
    assert [tensor.dims for tensor in found.tensors()] == [(0, 4)]
    assert found.tensor(0) is None


def test_no_tensor_is_longer_than_any_memory():
    found = call([[8, 1 << 62], [1 << 40, 4]], ["float", "float"])
    assert [tensor.dims for tensor in found.tensors()] == [(1 << 40, 4)]


def test_tensors_numbers_and_lists_are_told_apart():
    found = call(
        [[2, 3], [], [], [], [], [], []],
        ["c10::BFloat16", "double", "", "ScalarList", "Scalar", "Scalar", "Scalar"],
        ["", "", "", "[1, 1]", "True", "0.125", "-1"],
    )
    assert found.tensor(0).dims == (2, 3)
    assert found.tensor(0).size == 12
    assert found.tensor(1).dims == ()  # without extents, but with a type: a tensor
    assert found.at(2) == Plain()
    assert found.numbers(3) == (1, 1)
    assert (found.flag(4), found.integer(4), found.number(5), found.integer(6)) == (
        True,
        1,
        0.125,
        -1,
    )
    assert found.numbers(6) == (-1,)
    assert found.at(7) is found.at(None) is found.tensor(99) is None
    assert [tensor.dims for tensor in found.tensors()] == [(2, 3), ()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[True, False]", (True, False)),
        ("[]", ()),
        ("[0.5, 2]", (0.5, 2)),
        ("0.", 0.0),
        ("9.9999999999999998e-13", 1e-12),
        ("cuda:0", None),
        ("[1, same]", None),
        ("", None),
    ],
)
def test_recorded_texts_of_numbers(text, value):
    assert call([[]], ["Scalar"], [text]).at(0) == Plain(value)


def test_a_list_of_tensors_has_extents_and_no_type():
    found = call([[[1, 2], [3]], [], [[]]], ["TensorList", "TensorList", "TensorList"])
    assert [found.at(place) for place in range(3)] == [
        TensorList(((1, 2), (3,))),
        TensorList(()),  # over 30 tensors are not recorded
        TensorList(((),)),
    ]
    assert call([[[4, 4], [4]], []], ["GenericList", "GenericList"]).at(0) == TensorList(
        ((4, 4), (4,))
    )


def test_an_unknown_type_costs_only_that_input_its_type():
    found = call([[3], [2], []], ["quaternion", "float", "octonion"])
    assert (found.tensor(0).kind, found.tensor(0).size, found.tensor(0).elements) == (None, None, 3)
    assert found.tensor(1).size == 8
    assert found.at(2) == Plain()


@pytest.mark.parametrize("word", sorted(NOT_TENSORS))
def test_words_of_all_generations_for_what_is_no_tensor(word):
    assert call([[]], [word]).at(0) == Plain()


@pytest.mark.parametrize(
    ("word", "size"),
    [
        ("short int", 2), ("unsigned int", 4), ("long unsigned int", 8), ("long", 8),
        ("short unsigned int", 2), ("c10::complex<c10::Half>", 4), ("c10::Float8_e8m0fnu", 1),
        ("c10::Float4_e2m1fn_x2", 1), ("c10::qint8", 1), ("c10::quint8", 1), ("c10::qint32", 4),
        ("unsigned char", 1), ("bool", 1), ("c10::Float8_e5m2fnuz", 1),
    ],
)  # fmt: skip
def test_words_of_element_types(word, size):
    assert call([[5]], [word]).tensor(0).size == 5 * size


def test_a_packed_type_holds_two_values():
    assert BY_WORD["c10::Float4_e2m1fn_x2"].packed == 2


def test_an_expanded_tensor_is_as_large_as_what_it_holds():
    expanded = call([[8, 4, 3]], ["float"], strides=[[0, 3, 1]]).tensor(0)
    assert (expanded.elements, expanded.distinct, expanded.size) == (96, 12, 48)
    assert call([[8, 0]], ["float"], strides=[[0, 1]]).tensor(0).distinct == 0
    assert call([[8, 4]], ["float"], strides=[[0]]).tensor(0) == Tensor((8, 4), BY_WORD["float"])
