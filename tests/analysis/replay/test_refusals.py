"""Which operators a trace may make us run."""

from __future__ import annotations

import pytest

from profharness.analysis.replay.refusals import refusal


@pytest.mark.parametrize(
    "name", ["aten::addmm", "aten::_softmax", "aten::index_put_", "aten::set_rows"]
)
def test_operators_of_torch_run(name):
    assert refusal(name, ()) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten::from_file", "more than compute"),
        ("aten::save", "more than compute"),
        ("aten::record_stream", "more than compute"),
        ("aten::set_", "more than compute"),
        ("mylib::kernel", "--namespace mylib"),
        ("aten::mm; import os", "none of an operator"),
        ("aten::__class__::x", "none of an operator"),
        ("os.system", "none of an operator"),
        ("aten::mm\n", "none of an operator"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "graph of gradients"),
        ("AddmmBackward0", "graph of gradients"),
        ("torch::autograd::AccumulateGrad", "graph of gradients"),
        (
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            "graph of gradients",
        ),
        ("Optimizer.step#SGD.step", "none of an operator"),
    ],
)
def test_all_else_is_refused_with_its_reason(name, words):
    assert words in refusal(name, ())


def test_a_namespace_that_the_user_allows():
    assert refusal("mylib::kernel", ("mylib",)) == ""
    assert refusal("mylib::save", ("mylib",)) == ""
    assert "more than compute" in refusal("aten::save", ("mylib",))
