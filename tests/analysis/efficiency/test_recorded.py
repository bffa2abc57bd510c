"""What recorded files could have used better, worked out a second time from their own text: by
walking over their events, without the project's tables.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import pairwise
from statistics import median

import pytest

from profharness.findings import Finding
from tests.conftest import shared_path
from tests.recorded import TOGETHER, summary_of

pytestmark = TOGETHER

CONVOLUTION = re.compile(r"^aten::\w*conv|ConvolutionBackward")
TRANSPOSE = re.compile("batched_transpose|nchwToNhwc|nhwcToNchw")


@dataclass(frozen=True)
class Launched:
    """A kernel with the operators around its launch, the outermost first."""

    name: str
    start: int
    end: int
    stream: int
    operators: tuple[dict, ...]
    grid: tuple[int, ...]


@cache
def events(name: str) -> list[dict]:
    text = gzip.decompress(shared_path(f"fixtures/kineto/{name}").read_bytes())
    return [
        event
        for event in json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]
        if event.get("ph") == "X"
    ]


def ns(event: dict) -> tuple[int, int]:
    start = int(Decimal(event["ts"]) * 1000)
    return start, start + int(Decimal(event["dur"]) * 1000)


@cache
def around_calls(name: str) -> dict[int, tuple[dict, ...]]:
    """By correlation the operators that are open when a host call starts on their thread."""
    found = {}
    threads = defaultdict(list)
    for event in events(name):
        if event["cat"] in ("cpu_op", "cuda_runtime", "cuda_driver"):
            threads[event["pid"], event["tid"]].append(event)
    for held in threads.values():
        open_operators: list[dict] = []
        for event in sorted(held, key=lambda one: (ns(one)[0], -ns(one)[1])):
            start, _ = ns(event)
            while open_operators and ns(open_operators[-1])[1] <= start:
                open_operators.pop()
            if event["cat"] == "cpu_op":
                open_operators.append(event)
            else:
                found[event["args"].get("correlation")] = tuple(open_operators)
    return found


@cache
def kernels(name: str) -> list[Launched]:
    calls = around_calls(name)
    return [
        Launched(
            event["name"],
            *ns(event),
            event["args"]["stream"],
            calls.get(event["args"].get("correlation"), ()),
            (*event["args"]["grid"], *event["args"]["block"]),
        )
        for event in events(name)
        if event["cat"] == "kernel"
    ]


@cache
def finding_of(name: str, kind: str) -> Finding:
    summary = summary_of(f"kineto/{name}")
    (found,) = [one for one in summary.findings if one.id == kind]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a100_nccl_rank0of2.json.gz", "mi300x_xdit_sd3.5.json.gz"])
def test_transposes_under_convolutions(shared, name):
    figures = finding_of(name, "layout-under-convolutions").figures
    under = [
        kernel
        for kernel in kernels(name)
        if any(CONVOLUTION.search(operator["name"]) for operator in kernel.operators)
    ]
    filled = sum(
        ns(event)[1] - ns(event)[0]
        for event in events(name)
        if event["cat"] in ("gpu_memcpy", "gpu_memset")
        and any(
            CONVOLUTION.search(operator["name"])
            for operator in around_calls(name).get(event["args"].get("correlation"), ())
        )
    )
    transposed = sum(one.end - one.start for one in under if TRANSPOSE.search(one.name))
    assert figures["layout_ns"] == transposed
    assert figures["others_ns"] >= filled
    assert figures["operators_ns"] == filled + sum(one.end - one.start for one in under)


@pytest.mark.slow
def test_most_of_the_tiles_lies_outside_of_small_products(shared):
    name = "mi300x_timesformer.json.gz"
    found = finding_of(name, "tile-waste")
    products = [
        (one, one.operators[-1]["args"]["Input Dims"])
        for one in kernels(name)
        if one.operators and one.operators[-1]["name"] == "aten::bmm" and "_MT" in one.name
    ]
    small = [(one, dims) for one, dims in products if dims[0][1:] == [8, 64]]
    assert {tuple(dims[1][1:]) for _, dims in small} == {(64, 8)}
    assert all("_MT16x448x64_" in one.name for one, _ in small)
    outside = 1 - 8 * 8 / (16 * 448)
    assert f"{100 * outside:.1f} % outside" in found.message
    time = sum(one.end - one.start for one, _ in small)
    moved = sum(2 * dims[0][0] * (2 * 8 * 64 + 8 * 8) for _, dims in small) / 5.3e12 * 1e9
    whole = sum(one.end - one.start for one in kernels(name))
    lost = found.figures["kernel_time_share"]
    assert lost == pytest.approx(min(outside * time, time - moved) / whole, abs=1e-3)
    assert (found.figures["extents"], found.figures["tile"]) == ("8 x 8 x 64", "16x448")


@pytest.mark.slow
def test_a_product_of_two_tensors_beside_an_all_to_all(shared):
    """The kind of kernel that loses most, each against every collective and copy of its device."""
    name = "a100_train_rank3of8_intus.json.gz"
    talking = [(one.start, one.end) for one in kernels(name) if "nccl" in one.name]
    talking += [ns(event) for event in events(name) if event["cat"].startswith("gpu_mem")]
    talking.sort()
    kinds = defaultdict(lambda: ([], []))
    for one in kernels(name):
        inner = one.operators[-1] if one.operators else None
        if inner is None or inner["name"] != "aten::mul" or "BinaryFunctor" not in one.name:
            continue
        if inner["args"].get("Input Dims") != [[1024, 512], [1024, 512]]:
            continue
        beside = sum(
            max(min(end, one.end) - max(start, one.start), 0) for start, end in merged(talking)
        )
        side = kinds[one.name, one.grid]
        if 2 * beside >= one.end - one.start:
            side[1].append(one.end - one.start)
        elif not beside:
            side[0].append(one.end - one.start)
    alone, beside = max(kinds.values(), key=lambda side: len(side[1]))
    message = finding_of(name, "contention").message
    assert f"median {median(beside) / 1000:.2f} µs beside ({len(beside)})" in message
    assert f"{median(alone) / 1000:.3f} µs alone ({len(alone)})" in message


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@pytest.mark.slow
def test_copies_of_the_result_of_attention_before_the_next_product(shared):
    """25 times in what the step launches the heads are brought beside each other, then multiplied."""
    name = "h100_qwen0.5b_prefill.json.gz"
    figures = finding_of(name, "copies-under-products").figures
    (step,) = [ns(event) for event in events(name) if event["name"].startswith("ProfilerStep")][:1]
    order = sorted(kernels(name), key=lambda one: (one.stream, one.start))
    number = fed = 0
    for copy, after in pairwise(order):
        if "direct_copy" not in copy.name or "gemm" not in after.name or not after.operators:
            continue
        if not copy.operators or not step[0] <= ns(copy.operators[-1])[0] < step[1]:
            continue  # launched before the step
        if copy.operators[-1]["name"] == "aten::copy_":
            written = size(copy.operators[-1]["args"]["Input Dims"][0])
            operands = [size(dims) for dims in after.operators[-1]["args"]["Input Dims"] if dims]
            if written in operands:
                number += 1
                fed += copy.end - copy.start
    assert number == 25
    assert figures["copies_ns"] == fed


def size(extents: list[int]) -> int:
    elements = 1
    for extent in extents:
        elements *= extent
    return elements
