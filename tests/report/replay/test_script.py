"""A replayed call as a script of its own: made of literals, whatever names and values it was told,
and one that runs.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys

import pytest

from profharness.report.replay.script import file_name, script
from profharness.trace.calls.plan import Passed, PassedTensor, ReplayLine
from tests.report.replay.test_replay_text import row, table

PRODUCT = ReplayLine(
    "result",
    slots=(
        Passed("self", tensors=(PassedTensor((8, 4), (1, 8), "float32"),)),
        Passed("mat2", tensors=(PassedTensor((4, 4), (4, 1), "float32"),)),
    ),
)


def of(*slots: Passed, overload: str = "") -> ReplayLine:
    return ReplayLine("result", overload=overload, slots=slots)


def test_its_arguments_are_those_that_were_passed():
    text = script(table(), row(), PRODUCT, "01.py")
    assert "run = torch.ops.aten.mm.default\n" in text
    assert "    tensor((8, 4), (1, 8), 'float32'),  # self\n" in text
    assert "torch.set_num_threads(2)" in text
    ast.parse(text)


def test_lists_keywords_indices_and_numbers():
    index = PassedTensor((5,), (1,), "int64", 0, 100)
    line = of(
        Passed("tensors", tensors=(index, index), listed=True),
        Passed("dim", value="-1"),
        Passed("value", value="-inf", keyword=True),
        Passed("device", value="None", keyword=True),
        overload="names",
    )
    text = script(table(), row("aten::cat"), line, "01.py")
    assert "run = torch.ops.aten.cat.names\n" in text
    one = "tensor((5,), (1,), 'int64', 0.0, 100.0)"
    assert f"    [{one}, {one}],  # tensors\n" in text.replace("0, 100)", "0.0, 100.0)")
    assert "    -1,  # dim\n" in text
    assert "    'value': float('-inf'),\n    'device': None,\n" in text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("aten::mm(); import os", PRODUCT),
        ("aten::mm", of(overload="x; import os")),
        ("aten::mm", of(Passed("a\nimport os"))),
        ("aten::mm", of(Passed("a", value="__import__('os')"))),
        ("aten::mm", of(Passed("a", value="1 +"))),
        ("aten::mm", of(Passed("a", tensors=(PassedTensor((1,), (1,), "x'); import os #"),)))),
    ],
)
def test_nothing_but_literals_and_names_gets_into_it(name, line):
    with pytest.raises(ValueError):  # noqa: PT011  each place has words of its own
        script(table(), row(name), line, "01.py")


def test_foreign_texts_stay_in_the_docstring():
    told = row(dtypes='["x\\"\\"\\"", "float"]', chosen=('""" + open("x") + """\nimport os',))
    tree = ast.parse(script(table(), told, PRODUCT, "01.py"))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    assert imported == ["sys", "time", "torch"]
    assert isinstance(tree.body[0], ast.Expr)


def test_names_of_files_are_plain():
    assert file_name(3, row("aten::add_")) == "03-aten-add_.py"
    assert file_name(3, row("../../x::y z")) == "03-x-y-z.py"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_it_runs(tmp_path):
    path = tmp_path / "01.py"
    text = script(table(), row(), PRODUCT, "01.py").replace("perf_counter() + 2", "perf_counter()")
    path.write_text(text)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("10 calls, median ")
