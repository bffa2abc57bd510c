from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.element_types import (
    BY_WORD,
    by_number,
    named,
    names,
    promote,
    result_type,
)
from tests import needs
from tests.analysis.operators.recording import record

needs.packages("torch")
pytestmark = needs.TORCH_HERE

PLAIN = (
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex32", "complex64", "complex128", "float8_e4m3fn",
    "float8_e5m2",
)  # fmt: skip
COMMON = tuple(
    name
    for name in PLAIN
    if name == "uint8" or not name.startswith(("uint", "float8", "complex32"))
)


def test_two_types_promote_as_in_torch():
    import torch

    for one, other in product(PLAIN, PLAIN):
        try:
            theirs = str(torch.promote_types(getattr(torch, one), getattr(torch, other)))
        except RuntimeError:
            theirs = "torch.None"
        ours = promote(named(one), named(other))
        assert f"torch.{ours and ours.name}" == theirs, (one, other)


types = st.sampled_from(COMMON)
numbers = st.sampled_from(((True, "bool"), (2, "int64"), (2.5, "float64"), (2j, "complex128")))


@given(st.tuples(types, st.booleans()), st.one_of(st.tuples(types, st.booleans()), numbers))
def test_results_have_the_type_that_torch_gives_them(one, other):
    import torch

    groups: tuple[list, list, list] = ([], [], [])
    operands = []
    for first, second in (one, other):
        if isinstance(first, str):
            operands.append(torch.zeros((3,) if second else (), dtype=getattr(torch, first)))
            groups[0 if second else 1].append(named(first))
        else:
            operands.append(first)
            groups[2].append(named(second))
    found = result_type(*groups)
    assert found is not None
    assert f"torch.{found.name}" == str(torch.result_type(*operands))


def test_nothing_has_no_type():
    assert result_type([], [], []) is None
    assert result_type([named("float8_e4m3fn"), named("float32")], [], []) is None


@pytest.mark.slow
def test_every_type_is_named_as_the_profiler_of_this_torch_does():
    """Words and sizes, and the numbers by which types are passed."""
    import torch

    held = [name for name in names() if hasattr(torch, name) and not name.startswith(("q", "bits"))]
    held = [
        name for name in held if "int4" not in name and "int2" not in name and name != "complex32"
    ]
    tensors = {name: torch.empty(3, dtype=getattr(torch, name)) for name in held}
    castable = [name for name in held if not name.startswith("float4")]
    cases = [lambda tensor=tensor: tensor.detach() for tensor in tensors.values()]
    casts = [
        lambda name=name: torch.zeros(3, dtype=torch.float32).to(getattr(torch, name))
        for name in castable
        if name != "float32"
    ]
    rows = record([*cases, *casts])
    for row, (name, tensor) in zip(rows, tensors.items(), strict=False):
        (detached,) = (inner for inner in row.inside if inner.name == "aten::detach")
        (word,) = json.loads(detached.texts[1])
        assert BY_WORD[word].name == name
        assert BY_WORD[word].item_bytes == tensor.element_size()
    for row, name in zip(
        rows[len(cases) :], [name for name in castable if name != "float32"], strict=True
    ):
        (cast,) = (inner for inner in row.all() if inner.name == "aten::_to_copy")
        number = json.loads(cast.texts[2])[1]
        found = by_number(int(number))
        assert found is not None
        assert found.name == name
        assert cast.work.low_bytes == 3 * 4 + 3 * found.item_bytes


@pytest.mark.parametrize("number", [-1, 99, 30])
def test_a_number_without_a_type(number):
    assert by_number(number) is None
