"""Launch geometry of ROCm files: files that state the workgroup's size as `grid` and all work-items
as `block` are told by what no workgroup can be, and hold the same as files in the usual order.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.kernels.columns import fill_of_kernels
from profharness.analysis.summarise import summarise_trace
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import document, kernel, launch, write

MAKE = Path(__file__).parents[3] / "benchmarks/make_kineto.py"
SWAPPED = "size as `grid`"


def swapped(content: dict[str, Any]) -> dict[str, Any]:
    """The same file in the order of the early builds, with all work-items in the place of the
    block, whatever the launching call took.
    """
    content = copy.deepcopy(content)
    in_items = {
        e["args"]["correlation"]
        for e in content["traceEvents"]
        if e["name"] == "hipExtModuleLaunchKernel"
    }
    for e in content["traceEvents"]:
        args = e.get("args", {})
        if "grid" in args:
            grid, block = args["grid"], args["block"]
            factor = [1, 1, 1] if args["correlation"] in in_items else block
            args["grid"], args["block"] = block, [g * f for g, f in zip(grid, factor, strict=True)]
    content.pop("roctracer_version", None)
    content["rocprofiler-sdk_version"] = 1.1
    return content


def read(folder: Path, content: dict[str, Any], wanted: Wanted = Wanted.ALL) -> Trace:
    return readers.read(write(folder / "t.json", content), wanted=wanted)


def shapes(trace: Trace) -> list[list[int]]:
    k = trace.kernels
    columns: list[list[int]] = np.column_stack(
        [
            k.workgroup_count_x,
            k.workgroup_count_y,
            k.workgroup_count_z,
            k.workgroup_size_x,
            k.workgroup_size_y,
            k.workgroup_size_z,
            k.workgroups,
        ]
    ).tolist()
    return columns


def notes(trace: Trace) -> list[int]:
    return [p.count for p in trace.problems if SWAPPED in p.message and p.severity == "info"]


def pair(call: str | None, number: int, grid: list[int], block: list[int]) -> list[dict[str, Any]]:
    size = {"grid": grid, "block": block}
    events = [kernel("k", 10 * number + 5, 2, correlation=number, kind="Dispatch Kernel", **size)]
    if call:
        events.append(launch(call, 10 * number, 2, number, **size))
    return events


def test_one_impossible_block_turns_every_record_of_the_file(tmp_path: Path) -> None:
    events = [
        *pair("hipLaunchKernel", 1, [256, 1, 1], [73728, 1, 1]),  # the sign
        *pair("hipLaunchKernel", 2, [256, 1, 1], [256, 1, 1]),  # one workgroup of 256, not 256
        *pair("hipExtModuleLaunchKernel", 3, [256, 1, 1], [512, 2, 3]),
        *pair("hipGraphLaunch", 4, [64, 4, 1], [100, 9, 2]),  # ends within a workgroup
        *pair(None, 5, [128, 1, 1], [640, 1, 1]),
        *pair("hipLaunchKernel", 6, [0, 0, 0], [0, 0, 0]),
    ]
    trace = read(tmp_path, document(events))
    assert shapes(trace) == [
        [288, 1, 1, 256, 1, 1, 288],
        [1, 1, 1, 256, 1, 1, 1],
        [2, 2, 3, 256, 1, 1, 12],
        [2, 3, 2, 64, 4, 1, 12],
        [5, 1, 1, 128, 1, 1, 5],
        [NULL] * 7,
    ]
    assert notes(trace) == [5]


@pytest.mark.parametrize(
    ("block", "properties", "turned"),
    [
        ([1024, 1, 1], {}, False),
        ([1025, 1, 1], {}, True),
        ([32, 32, 1], {}, False),
        ([32, 33, 1], {}, True),
        ([2**31 - 1, 2**31 - 1, 2**31 - 1], {}, True),  # more than 64 bits hold
        ([600, 1, 1], {"deviceProperties": [{"id": 0, "maxThreadsPerBlock": 512}]}, True),
        (
            [600, 1, 1],
            {
                "deviceProperties": [
                    {"id": 0, "maxThreadsPerBlock": 512},
                    {"id": 1, "maxThreadsPerBlock": 1024},
                ]
            },
            False,
        ),
        ([1025, 1, 1], {"deviceProperties": [{"id": 0, "maxThreadsPerBlock": 0}]}, True),
    ],
)
def test_the_largest_workgroup_of_the_files_devices_decides(
    tmp_path: Path, block: list[int], properties: dict[str, Any], turned: bool
) -> None:
    trace = read(tmp_path, document(pair("hipLaunchKernel", 1, [8, 1, 1], block), **properties))
    assert notes(trace) == [1] * turned
    assert shapes(trace)[0][3:6] == ([8, 1, 1] if turned else block)


def test_a_block_that_only_a_call_states_and_a_file_of_cuda_turn_nothing(tmp_path: Path) -> None:
    failed = launch("hipLaunchKernel", 1, 2, 7, grid=[9, 1, 1], block=[4096, 1, 1])
    trace = read(tmp_path, document([failed, *pair("hipLaunchKernel", 1, [5, 1, 1], [64, 1, 1])]))
    assert (shapes(trace), notes(trace)) == ([[5, 1, 1, 64, 1, 1, 5]], [])
    odd = kernel("k", 5, 1, correlation=3, grid=[4, 1, 1], block=[4096, 1, 1])
    trace = read(tmp_path, document([odd, launch("cudaLaunchKernel", 1, 2, 3)]))
    assert (shapes(trace), notes(trace)) == ([[4, 1, 1, 4096, 1, 1, 4]], [])


def test_in_the_usual_order_the_call_decides_and_zeros_are_unknown(tmp_path: Path) -> None:
    events = [
        *pair("hipExtModuleLaunchKernel", 1, [1000, 3, 1], [256, 2, 1]),
        *pair("hipHccModuleLaunchKernel", 2, [73728, 1, 1], [256, 1, 1]),
        *pair("hipModuleLaunchKernel", 3, [0, 0, 0], [0, 0, 0]),
        *pair("hipModuleLaunchKernel", 4, [77, 1, 1], [256, 1, 1]),
        *pair("hipLaunchCooperativeKernel", 5, [0, 0, 0], [512, 0, 0]),
    ]
    trace = read(tmp_path, document(events, **{"rocprofiler-sdk_version": 1.1}))
    assert shapes(trace) == [
        [4, 2, 1, 256, 2, 1, 8],
        [288, 1, 1, 256, 1, 1, 288],
        [NULL] * 7,
        [77, 1, 1, 256, 1, 1, 77],
        [NULL] * 7,
    ]
    assert notes(trace) == []


@pytest.mark.parametrize(
    ("stated", "version"), [("1.10", "1.10"), ("1.1", "1.1"), ('"1.3"', "1.3")]
)
def test_the_version_is_the_text_of_the_file(tmp_path: Path, stated: str, version: str) -> None:
    content = json.dumps(document(pair(None, 1, [1, 1, 1], [64, 1, 1])))
    path = write(tmp_path / "t.json", f'{{"rocprofiler-sdk_version": {stated}, {content[1:]}')
    trace = readers.read(path)
    assert trace.sources[0].tool_version == f"rocprofiler-sdk {version}"
    assert ("rocprofiler-sdk_version", version) in trace.sources[0].details
    assert trace.devices[0].vendor == "amd"


axes = st.tuples(st.integers(1, 70), st.integers(1, 5), st.integers(1, 3)).map(list)
# 1020 work-items at most: a workgroup of more than 1024 is the sign of the other order
blocks = st.tuples(st.integers(1, 68), st.integers(1, 5), st.integers(1, 3)).map(list)
calls = st.sampled_from(["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"])


@given(kernels=st.lists(st.tuples(calls, axes, blocks), min_size=1, max_size=12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_holds_the_same_in_both_orders(
    tmp_path: Path, kernels: list[tuple[str, list[int], list[int]]]
) -> None:
    events = [e for n, (call, g, b) in enumerate(kernels, 1) for e in pair(call, n, g, b)]
    events += pair("hipLaunchKernel", 99, [64, 1, 1], [64, 1, 1])  # 4096 work-items: the sign
    usual, turned = document(events), swapped(document(events))
    for wanted in (Wanted.ALL, Wanted.DEVICES, Wanted.LAUNCHED):
        before, after = read(tmp_path, usual, wanted), read(tmp_path, turned, wanted)
        assert shapes(before) == shapes(after)
        assert (notes(before), notes(after)) == ([], [len(kernels) + 1])


def test_fill_and_work_of_a_generated_file_are_those_of_the_usual_order(tmp_path: Path) -> None:
    made = tmp_path / "usual.json"
    subprocess.run(
        [sys.executable, MAKE, "--kernels", "500", "-o", made],
        check=True,
    )
    content = json.loads(made.read_text())
    turned = write(tmp_path / "turned.json", swapped(content))
    traces = [readers.read(path) for path in (made, turned)]
    grids = [e["args"]["grid"][0] for e in content["traceEvents"] if e["cat"] == "kernel"]
    assert sum(grids) == int(traces[1].kernels.workgroups.sum())
    assert notes(traces[1]) == [500]
    fills = [fill_of_kernels(trace) for trace in traces]
    assert np.array_equal(fills[0], np.minimum(np.array(grids) / 304, 1.0))
    assert np.array_equal(fills[0], fills[1])
    usual, other = (summarise_trace(trace, "made") for trace in traces)
    assert usual.metrics["fill"].value == other.metrics["fill"].value
    assert usual.metrics == other.metrics
    assert (usual.work, usual.partition) == (other.work, other.partition)
