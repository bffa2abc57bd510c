"""Recorded inputs as tasks: parsed as literals, and never more than that."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.replay.arguments import arguments_of
from profharness.analysis.replay.hottest import HotCall
from profharness.analysis.replay.tasks import narrower, tasks_of
from profharness.trace.calls.plan import TensorGiven, TensorsGiven, ValueGiven

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def of(dims: object, types: object, values: object = (), strides: object = ()) -> object:
    texts = (json.dumps(one) for one in (dims, types, values, strides))
    return arguments_of(("aten::x", *texts))  # type: ignore[arg-type]  # four texts


def test_each_kind_of_input():
    assert of(
        [[2, 3], [], [], [[4], [5, 6]], [], []],
        ["c10::BFloat16", "Scalar", "ScalarList", "TensorList", "", "Scalar"],
        ["", "-inf", "[1, -1]", "", "", ""],
        [[1, 2], [], [], [[1], [6, 1]], [], []],
    ) == (
        TensorGiven((2, 3), "bfloat16", (1, 2)),
        ValueGiven(("-inf",)),
        ValueGiven(("1", "-1"), listed=True),
        TensorsGiven(((4,), (5, 6)), ((1,), (6, 1))),
        ValueGiven(),
        ValueGiven(lost=True),
    )


def test_without_shapes_there_are_no_arguments():
    assert arguments_of(("aten::x", "", "", "", "")) is None


@given(st.integers() | st.floats(allow_nan=False) | st.booleans())
def test_a_number_comes_back(value):
    (found,) = of([[]], ["Scalar"], [str(value)])
    (text,) = found.texts
    read = {"True": True, "False": False}[text] if isinstance(value, bool) else type(value)(text)
    assert read == value


@given(_JSON, _JSON, _JSON, _JSON)
def test_no_text_breaks_it_or_passes_as_a_value(dims, types, values, strides):
    for one in of(dims, types, values, strides) or ():
        if isinstance(one, ValueGiven):
            for text in one.texts:
                assert text in ("True", "False") or isinstance(float(text), float)


def hot(name: str, *texts: object) -> HotCall:
    import numpy as np

    words = [json.dumps(one) for one in texts] + [""] * (4 - len(texts))
    rows = np.array([0])
    return HotCall((name, *words), rows, 10, 1.0, rows)  # type: ignore[arg-type]  # four words


def test_lists_get_the_type_of_the_call_or_the_usual_one():
    tasks = tasks_of(
        [
            hot("aten::mm", [[2, 2], [2, 2]], ["c10::Half", "c10::Half"]),
            hot("aten::cat", [[[2], [2]], []], ["TensorList", "Scalar"], ["", "0"]),
            hot("aten::x", [[[2]], [3]], ["TensorList", "double"]),
        ]
    ).tasks
    assert [task.list_type for task in tasks] == ["float16", "float16", "float64"]
    assert [narrower(task) for task in tasks] == [(), (), ("bfloat16",)]


def test_what_cannot_be_run_has_its_reason():
    refused = tasks_of([hot("aten::from_file"), hot("AddmmBackward0"), hot("aten::mm")]).refused
    assert list(refused) == [0, 1, 2]
    assert "graph of gradients" in refused[1]
    assert refused[2] == "its shapes are not recorded"
