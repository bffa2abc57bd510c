"""Against the FLOPs that TraceLens published of the same operators in the same traces: equal, or off
by exactly what its conventions add.

- it adds one operation per output where a product has a bias;
- of causal attention it counts half of all pairs, without the half of the diagonal;
- of a convolution's backward it counts both gradients, whatever `output_mask` says;
- of a server's attention the lengths stand in the annotation of the step; of the pairs of a
  prompt's own tokens it counts half, as of causal attention, without the half of the diagonal.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
from math import prod
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.coverage import known_work
from profharness.analysis.operators.device_time import device_time
from profharness.analysis.operators.engine import own_engine
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.records import ALONE, Given, Lengths, ServerStep, Work
from profharness.analysis.operators.rows import row_work
from profharness.analysis.time.linking import link_kernels
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import captured_graphs
from profharness.trace.graphs.replays import recovered
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.conftest import shared_path

FOLDER = shared_path("fixtures/kineto/expected")
FILES = ("CONV_fwd", "CONV_bwd", "SDPA_fwd", "GEMM", "InferenceAttention_fwd")
RECORDED = ("Input Dims", "Input type", "Concrete Inputs", "Input Strides")
TABLES = sorted(path for name in FILES for path in FOLDER.glob(f"*/{name}.csv"))
LENGTHS = ("sq", "sk", "sqsq", "sqsk")
SGLANG = "mi300x_sglang_qwen3-8b_decode_hipgraph"
VLLM = "mi300x_vllm_piecewise_graphs"
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
        context, generation = (
            Lengths(*(float(line[f"param: {part}_{name}"]) for name in LENGTHS)) for part in "cg"
        )
        work = work_of(line, Given(step=ServerStep(context, generation)))
        place = 2 if line["name"].startswith("sglang") else 0
        _, heads, depth = dims_of(line)[place]
        assert work.flops is not None
        assert work.flops - 4 * heads * depth * context.queries / 2 == published(line)
        every = context.products + generation.products
        assert work.full == 4 * heads * every * depth
        kv = dims_of(line)[place + 1][-2:]
        keys = context.keys + generation.keys
        assert work.low_bytes == 2 * (2 * prod(dims_of(line)[place]) + 2 * keys * prod(kv))


def rows_of(trace: Trace, line: Line) -> list[int]:
    """The operators of a trace with the name and extents of a published row."""
    ops, strings = trace.ops, trace.strings
    named = [
        row
        for row in range(len(ops))
        if re.sub(r"(?<=ragged)_\d+$", "", strings[int(ops.name[row])]) == line["name"]
    ]
    wanted = json.loads(json.dumps(dims_of(line)))
    return [row for row in named if json.loads(strings[int(ops.shapes[row])] or "0") == wanted]


@pytest.fixture(scope="module")
def sglang(shared: Path) -> Trace:
    """The replay of a decoding step with the operators of its capture."""
    folder = shared / "fixtures/kineto"
    captures = captured_graphs(
        readers.read(folder / "mi300x_sglang_graph_capture.json.gz", wanted=Wanted.LAUNCHED)
    )
    trace, found = recovered(readers.read(folder / f"{SGLANG}.json.gz"), captures)
    assert (found.exact, found.matched, found.kernels) == (1, 544, 544)
    return trace


def test_operators_of_a_graph_replay_are_those_that_were_published(sglang: Trace) -> None:
    work, tree = row_work(sglang), nests(sglang.ops)
    counted = 0.0
    for line in lines_of(FOLDER / SGLANG / "GEMM.csv"):
        rows = rows_of(sglang, line)
        assert len(rows) == int(line["name_count"]), line["name"]
        assert work_of(line).flops == published(line)
        if line["name"] == "aten::mm":  # the peer lists the level around it, too
            assert (work.flops[rows] == published(line)).all()
            counted += published(line) * len(rows)
        else:
            holder = tree.nearest(np.isin(np.arange(len(sglang.ops)), rows))
            inner = (holder != NULL) & np.isfinite(work.flops)
            assert inner.sum() == len(rows)
            assert (work.flops[inner] == published(line)).all()
    (attention,) = (
        line
        for line in lines_of(FOLDER / SGLANG / "InferenceAttention_fwd.csv")
        if line["name"].startswith("sglang_profiler::attention")
    )
    rows = rows_of(sglang, attention)
    assert len(rows) == int(attention["name_count"]) == 36
    assert (work.flops[rows] == published(attention)).all()
    assert np.nansum(work.flops) == counted + 36 * published(attention)


def test_all_matrix_work_of_a_graph_replay_is_known(sglang: Trace) -> None:
    known = known_work(KernelFacts(sglang), link_kernels(sglang))
    assert known is not None
    assert (known.share, known.reasons) == (1.0, {})


def test_attention_of_vllm_by_the_annotation_of_its_step(shared: Path) -> None:
    trace = readers.read(shared / f"fixtures/kineto/{VLLM}.json.gz")
    (line,) = lines_of(FOLDER / VLLM / "InferenceAttention_fwd.csv")
    rows, work = rows_of(trace, line), row_work(trace)
    assert len(rows) == int(line["name_count"]) == 24
    _, heads, depth = dims_of(line)[0]
    half = 4 * heads * depth * float(line["param: c_sq"]) / 2
    assert (work.flops[rows] - half == published(line)).all()
    times = device_time(trace)
    assert times is not None
    spent = times.inclusive_ns[rows].sum() / 1000
    assert spent == pytest.approx(float(line["Kernel Time (µs)_sum"]), rel=1e-6)


def differing(path: Path) -> int:
    """How many rows of a table differ from ours by a convention of the peer."""
    return sum(EXPECTED[path.stem](line) != published(line) for line in lines_of(path))


def test_how_many_rows_differ_by_convention(shared: Path) -> None:
    counts = {
        name: sum(differing(path) for path in TABLES if path.stem == name) for name in EXPECTED
    }
    assert counts == {"GEMM": 33, "SDPA_fwd": 4, "CONV_fwd": 0, "CONV_bwd": 1}


IN_TRACE = [path for path in TABLES if path.stem in EXPECTED and path.parent.name != SGLANG]
NOT_IN_TRACE = {
    (VLLM, "GEMM"): 6,  # replayed graphs: no trace of their capture lies beside it
}


@pytest.mark.slow
@pytest.mark.parametrize("path", IN_TRACE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_published_rows_by_the_operators_of_the_trace(path: Path, shared: Path) -> None:
    """Each nest of operators holds the work once, at whichever of its levels was published: at the
    row itself, around it (attention) or inside of it.
    """
    trace = readers.read(shared / f"fixtures/kineto/{path.parent.name}.json.gz")
    work = row_work(trace)
    inside = nests(trace.ops).with_inner(np.nan_to_num(work.flops).astype(np.int64))
    flops = np.where(work.owner == NULL, inside, work.flops[work.owner])
    absent = 0
    for line in lines_of(path):
        rows = rows_of(trace, line)
        absent += not rows
        assert (flops[rows] == EXPECTED[path.stem](line)).all(), (line["name"], dims_of(line))
    assert absent == NOT_IN_TRACE.get((path.parent.name, path.stem), 0)
