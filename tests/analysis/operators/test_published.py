"""Against the FLOPs that TraceLens published of the same operators in the same traces: equal, or off
by exactly what its conventions add.

- it adds one operation per output where a product has a bias;
- of causal attention it counts half of all pairs, without the half of the diagonal;
- of a convolution's backward it counts both gradients, whatever `output_mask` says;
- of a server's attention the lengths stand in the annotation of the step; it takes half of the
  squares of the prompt's own tokens from the pairs.
"""

from __future__ import annotations

import ast
import csv
import json
import sys
from math import prod
from pathlib import Path

import pytest

from profharness.analysis.operators.engine import own_engine
from profharness.analysis.operators.records import ALONE, Given, Work
from tests.conftest import shared_path

FOLDER = shared_path("fixtures/kineto/expected")
FILES = ("CONV_fwd", "CONV_bwd", "SDPA_fwd", "GEMM", "InferenceAttention_fwd")
RECORDED = ("Input Dims", "Input type", "Concrete Inputs", "Input Strides")
TABLES = sorted(path for name in FILES for path in FOLDER.glob(f"*/{name}.csv"))
Line = dict[str, str]


def lines_of(path: Path) -> list[Line]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def dims_of(line: Line) -> list[list[int]]:
    return ast.literal_eval(line["Input Dims_first"])


def work_of(line: Line, given: Given = ALONE) -> Work:
    texts = [json.dumps(ast.literal_eval(line[f"{key}_first"])) for key in RECORDED]
    return own_engine().work(line["name"], *texts, given=given)


def published(line: Line) -> int:
    return round(float(line["GFLOPS_first"]) * 1e9)


def expected_product(line: Line) -> int:
    m, n, k = (int(float(line[f"param: {letter}"])) for letter in "MNK")
    biased = line["param: bias"] == "True"
    batch = dims_of(line)[0][0] if line["name"] == "aten::bmm" else 1
    assert published(line) == batch * (2 * m * n * k + biased * m * n)
    return batch * 2 * m * n * k


def expected_attention(line: Line) -> int:
    batch, heads, rows, depth = dims_of(line)[0]
    if line["param: causal"] != "True":
        return published(line)
    assert published(line) == batch * heads * 2 * rows * rows * depth
    return batch * heads * 2 * rows * (rows + 1) * depth


def expected_backward(line: Line) -> int:
    mask = ast.literal_eval(ast.literal_eval(line["Concrete Inputs_first"])[10])
    assert sum(mask[:2]) in (1, 2)
    return published(line) * sum(mask[:2]) // 2


EXPECTED = {
    "GEMM": expected_product,
    "SDPA_fwd": expected_attention,
    "CONV_fwd": published,
    "CONV_bwd": expected_backward,
}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_published_operations(path: Path) -> None:
    for line in lines_of(path):
        if path.stem == "InferenceAttention_fwd":
            continue
        work = work_of(line)
        assert work.flops == EXPECTED[path.stem](line), line["name"]
        assert (work.bound, work.reason) == ("", "")
        assert (work.flops_full is not None) == (line.get("param: causal") == "True")


def test_every_kind_of_row_was_there(shared: Path) -> None:
    counts = {
        name: sum(len(lines_of(path)) for path in TABLES if path.stem == name) for name in FILES
    }
    assert counts == {
        "CONV_fwd": 35, "CONV_bwd": 11, "SDPA_fwd": 9, "GEMM": 82, "InferenceAttention_fwd": 3,
    }  # fmt: skip
    halved = [
        line
        for path in TABLES
        if path.stem == "CONV_bwd"
        for line in lines_of(path)
        if expected_backward(line) != published(line)
    ]
    assert [dims_of(line)[1] for line in halved] == [[10, 3, 224, 224]]


@pytest.mark.parametrize(
    "path",
    [path for path in TABLES if path.stem == "InferenceAttention_fwd"],
    ids=lambda path: path.parent.name,
)
def test_attention_of_servers_by_the_lengths_of_the_step(path: Path) -> None:
    for line in lines_of(path):
        if line["name"].startswith("sglang::store"):
            continue
        assert work_of(line).reason == "lengths unknown"
        lengths = {
            name: float(line[f"param: {name}"])
            for name in ("c_sqsk", "c_sqsq", "c_sk", "g_sqsk", "g_sk")
        }
        every = lengths["c_sqsk"] + lengths["g_sqsk"]
        keys = lengths["c_sk"] + lengths["g_sk"]
        work = work_of(
            line, Given(pairs=every - lengths["c_sqsq"] / 2, pairs_full=every, keys=keys)
        )
        assert work.flops == published(line)
        place = 2 if line["name"].startswith("sglang") else 0
        _, heads, depth = dims_of(line)[place]
        assert work.full == 2 * heads * every * 2 * depth
        kv = dims_of(line)[place + 1][-2:]
        assert work.low_bytes == 2 * (2 * prod(dims_of(line)[place]) + 2 * keys * prod(kv))
