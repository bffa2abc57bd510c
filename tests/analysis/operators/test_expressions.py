from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.calls import read_call
from profharness.analysis.operators.expressions import ExpressionError, Names, Unknown, compiled

CALL = read_call(
    "mine::op",
    json.dumps([[2, 3, 4], [[5], [6, 7]], [], []]),
    json.dumps(["c10::Half", "TensorList", "ScalarList", "Scalar"]),
    json.dumps(["", "", "[8, 9]", "2.5"]),
)
assert CALL is not None
NAMES = Names(CALL, (64.0, 128.0))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 ** 3 ** 2", 512),
        ("10 - 4 - 3", 3),
        ("7 // 2 + 7 % 4", 6),
        ("1e3 / 4", 250),
        ("2 * prod(d[0])", 48),
        ("d[0][-1] * d[0][0]", 8),
        ("prod(d[0][:-1]) + sum(d[0][1:])", 13),
        ("e[0] * len(d[0])", 6),
        ("size(0)", 48),
        ("total(1)", 47),
        ("c[3] + c[2][1]", 11.5),
        ("max(c[2]) + min(1, c[2], 4)", 10),
        ("ceil(c[3]) + floor(c[3])", 5),
        ("g[0] * g[1]", 8192),
        ("(d[0][0] >= 2) + (e[0] < 2) + (1 != 1)", 1),
        ("4 - -1", 5),
        ("0 * -1", 0),
    ],
)
def test_values(text, value):
    assert compiled(text).value(NAMES) == value


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6), st.data())
def test_arithmetic_is_that_of_python(numbers, data):
    signs = [data.draw(st.sampled_from(("+", "*", "-"))) for _ in numbers[1:]]
    text = str(numbers[0]) + "".join(f" {s} {n}" for s, n in zip(signs, numbers[1:], strict=True))
    assert compiled(f"max(0, {text})").value(NAMES) == max(0, eval(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the end instead of a number"),
        ("1 +", "the end instead"),
        ("2 * x", "'x' instead of a number, a bracket or one of d, c, e, g, prod"),
        ("d[0", "the end instead of ']'"),
        ("d[x]", "'x' instead of a whole number"),
        ("d[1.5]", "'1.5' instead of a whole number"),
        ("1 2", "'2' instead of an operator or the end"),
        ("__import__('os')", "'__import__' instead"),
        ("prod(1", "the end instead of ')'"),
        ("1 ; 2", "';' instead"),
        ("(" * 200 + "1" + ")" * 200, "nested too deeply"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text, said):
    with pytest.raises(ExpressionError, match=r"character|nested") as error:
        compiled(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "d[3][0]", "d[9][0]", "d[0][7]", "c[0]", "c[9]", "e[1]", "g[2]", "size(2)", "total(0)",
        "1 / 0", "1 % 0", "0 - 1", "d[0]", "2 * d[0]", "c[3][0]", "10 ** 400", "10.0 ** 90",
        "ceil(1, 2)", "max(d[0][3:])",
    ],
)  # fmt: skip
def test_what_a_call_does_not_hold_is_unknown(text):
    with pytest.raises(Unknown):
        compiled(text).value(NAMES)


def test_powers_end_in_an_error_and_not_in_hours():
    with pytest.raises(Unknown):
        compiled("9 ** 9 ** 9 ** 9").value(NAMES)
    assert compiled("2 ** 0.5").value(NAMES) == math.sqrt(2)
