"""`profharness replay` from the line to its output, with the torch at hand on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import needs, started
from tests.analysis.replay.calls import operator, recorded, relu, written

needs.packages("torch")

QUICK = ("--min-seconds", "0.01", "--threads", "1")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls that torch can run, and two that nobody may."""
    two = recorded([[64, 32], [32, 16]], ["float", "float"], ["", ""], [[32, 1], [16, 1]])
    listed = recorded([[[8, 4], [8, 4]], []], ["TensorList", "Scalar"], ["", "1"])
    rows = recorded([[100, 8], [5], [], [], []], ["float", "long int", *["Scalar"] * 3], [""] * 5)
    return written(
        tmp_path_factory.mktemp("replay") / "trace.json",
        operator("aten::mm", 0, 1e6, **two),
        operator("aten::mm", 2e6, 1e6, **two),
        operator("aten::cat", 4e6, 5e5, **listed),
        operator("aten::embedding", 5e6, 4e5, **rows),
        operator("mylib::secret", 6e6, 3e5, **two),
        operator("aten::from_file", 7e6, 2e5, **two),
        relu(8e6, 1e5),
        record_shapes=1,
    )


@pytest.mark.slow
def test_each_call_stands_beside_its_trace(trace):
    done = started.run("replay", str(trace), "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows) == ["aten::mm", "aten::cat", "aten::embedding", "aten::relu"]
    product = rows["aten::mm"]
    assert product["calls"] == 2
    assert product["in_trace"]["value"] == 1e9
    assert 0 < product["alone"]["low"] <= product["alone"]["value"] < 1e9
    assert product["ratio"]["value"] > 1
    assert product["reading"] == "surroundings"
    assert sum(product["split"].values()) == pytest.approx(1e9)
    assert rows["aten::cat"]["chosen"] == ["tensors: element type float32"]
    assert "indices: evenly spread from 0 to 99" in rows["aten::embedding"]["chosen"]
    assert [(one["name"], one["reason"][:28]) for one in found["not_replayed"]] == [
        ("mylib::secret", "it is an operator of mylib, "),
        ("aten::from_file", "it does more than compute, o"),
    ]
    assert (found["device"], found["threads"]) == ("cpu", 1)
    assert found["in_trace_ns"] == 3_000_000_000
    assert sum(found["sum"].values()) == pytest.approx(3e9)


@pytest.mark.slow
def test_a_sentence_answers_first_and_a_script_is_left(trace, tmp_path):
    folder = tmp_path / "scripts"
    words = ("--top", "1", "--write-scripts", str(folder))
    done = started.run("replay", str(trace), *words, *QUICK)
    assert done.returncode == 0, done.stderr
    first, _, where, heads, row, *_ = done.stdout.splitlines()
    assert first.startswith("Of 2.000 s that the hottest call took in the trace, ")
    assert "alone and warm they take" in first
    assert where.startswith("alone on cpu, 1 thread, torch ")
    assert heads.split()[:3] == ["row", "share", "calls"]
    assert row.endswith("surroundings  aten::mm(64×32, 32×16) fp32")
    assert [path.name for path in folder.iterdir()] == ["01-aten-mm.py"]
    text = (folder / "01-aten-mm.py").read_text()
    assert "tensor((64, 32), (32, 1), 'float32'),  # self\n" in text


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--device", "tpu"), 2, "there is no device 'tpu'"),
        (("--device", "cuda"), 2, "ran on the CPU"),
        (("--python", "/nowhere/python"), 3, "no such program"),
        (("--write-scripts", "/usr"), 2, "is not empty"),
    ],
)
def test_what_cannot_be_done_says_so(trace, words, status, says):
    done = started.run("replay", str(trace), *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


def test_a_trace_without_shapes_says_what_to_add(tmp_path):
    path = written(tmp_path / "trace.json", operator("aten::mm", 0, 10))
    done = started.run("replay", str(path))
    assert done.returncode == 4
    assert "recorded without their shapes" in done.stderr
    assert "record_shapes=True" in done.stderr


def test_a_trace_without_operators_says_what_to_record(tmp_path):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaFree", "pid": 1, "tid": 1}
    done = started.run("replay", str(written(tmp_path / "trace.json", {**call, "ts": 0, "dur": 1})))
    assert done.returncode == 4
    assert "--profile torch" in done.stderr
