from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.time.device_work import work_of
from profharness.analysis.time.graph_losses import graph_losses
from profharness.errors import InputError
from profharness.readers.kineto import reader as chrome_json
from profharness.readers.kineto.devices import DeviceRows, TimeRows
from profharness.readers.kineto.events import KinetoRows
from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import ClockDomain, Problem, Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import HOST, document, event, kernel, launch, op, write


def read(tmp_path: Path, events: list[Any], **keys: Any) -> Trace:
    return readers.read(write(tmp_path / "t.json", document(events, **keys)))


def problem(trace: Trace, part: str) -> Problem:
    found = [p for p in trace.problems if part in p.message]
    assert len(found) == 1, trace.problems
    return found[0]


def texts(trace: Trace, codes: np.ndarray) -> list[str]:
    return trace.strings.decode(codes)


def test_a_small_trace(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            op("aten::mm", 0, 10, 1, Input_Dims=[[2, 3], [3, 4]], Input_type=["float", "float"]),
            launch("cudaLaunchKernel", 2, 3, 5, External_id=1),
            kernel(
                "gemm",
                7.125,
                2.5,
                correlation=5,
                External_id=1,
                grid=[2, 3, 1],
                block=[64, 2, 1],
                registers_per_thread=40,
                shared_memory=1024,
            ),
            event("user_annotation", "ProfilerStep#3", 0, 20),
            event("gpu_user_annotation", "ProfilerStep#3", 7, 3, pid=0, tid=7),
        ],
        baseTimeNanoseconds=1_700_000_000_000_000_000,
        distributedInfo={"rank": 1, "world_size": 4, "backend": "nccl"},
        host_name="node7",
        deviceProperties=[{"id": 0, "name": "NVIDIA A100", "numSms": 108}],
        cupti_version=18,
    )
    base = 1_700_000_000_000_000_000
    k = trace.kernels
    assert (k.start_ns[0], k.dur_ns[0], k.workgroups[0], k.vgpr[0], k.lds_bytes[0]) == (
        base + 7125,
        2500,
        6,
        40,
        1024,
    )
    assert (k.workgroup_count_x[0], k.workgroup_count_y[0], k.workgroup_count_z[0]) == (2, 3, 1)
    assert (k.workgroup_size_x[0], k.workgroup_size_y[0], k.workgroup_size_z[0]) == (64, 2, 1)
    assert (k.pid[0], k.tid[0], k.rank[0], k.op[0], k.correlation[0], k.point[0]) == (
        HOST,
        HOST,
        1,
        0,
        5,
        NULL,
    )
    assert texts(trace, k.host) == ["node7"]
    assert (trace.devices[0].name, trace.devices[0].compute_units, trace.devices[0].vendor) == (
        "NVIDIA A100",
        108,
        "nvidia",
    )
    assert (trace.streams[0].device, trace.streams[0].name) == (0, "7")
    assert texts(trace, trace.api.domain) == ["cuda"]
    assert texts(trace, trace.ops.shapes) == ["[[2, 3], [3, 4]]"]
    assert texts(trace, trace.ops.dtype) == ['["float", "float"]']
    assert texts(trace, trace.marks.name) == ["ProfilerStep#3"]
    assert texts(trace, trace.marks.kind) == ["step"]
    source = trace.sources[0]
    assert (source.clock, source.rank, source.world_size, source.host, source.pid) == (
        ClockDomain.REALTIME,
        1,
        4,
        "node7",
        HOST,
    )
    assert source.tool_version == "cupti 18"
    assert source.has_host_calls
    assert dict(source.details)["backend"] == "nccl"
    assert [(p.severity, p.count) for p in trace.problems] == [("info", 1)]
    assert "gpu_user_annotation 1" in trace.problems[0].message


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_2021_files(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            event("Operator", "aten::add", 1623142623460111, 9, tid="100", External_id=4),
            event("Operator", "ProfilerStep#5", 1623142623460000, 100, tid="100"),
            event("Operator", LOADER, 1623142623460010, 50, tid="100"),
            event(
                "Runtime",
                "cudaLaunchKernel",
                1623142623460112,
                3,
                tid="100",
                correlation=8,
                external_id=4,
            ),
            {
                **event(
                    "Kernel",
                    "add",
                    1623142623460120,
                    2,
                    pid=0,
                    tid="stream 7",
                    correlation=8,
                    external_id=4,
                )
            },
            event(
                "Memcpy",
                "Memcpy HtoD (Pinned -> Device)",
                1623142623460130,
                1,
                pid=0,
                tid="stream 7",
                device=0,
                stream=7,
                bytes=10,
            ),
            event(
                "Memset",
                "Memset (Device)",
                1623142623460140,
                1,
                pid=0,
                tid="stream 7",
                device=0,
                stream=7,
                bytes=10,
            ),
        ],
    )
    assert trace.kernels.start_ns.tolist() == [1623142623460120000]
    assert trace.kernels.op.tolist() == [0]
    assert trace.kernels.tid.tolist() == [100]
    assert [s.name for s in trace.streams] == ["7"]
    assert texts(trace, trace.copies.kind) == ["h2d", "fill"]
    assert texts(trace, trace.marks.name) == ["ProfilerStep#5", LOADER]
    assert texts(trace, trace.marks.kind) == ["step", "range"]
    assert texts(trace, trace.ops.name) == ["aten::add"]
    assert trace.sources[0].clock is ClockDomain.REALTIME


def test_batches_of_a_loader_are_ranges(tmp_path: Path) -> None:
    trace = read(tmp_path, [event("user_annotation", LOADER, 10, 50)])
    assert texts(trace, trace.marks.name) == [LOADER]
    assert texts(trace, trace.marks.kind) == ["range"]
    assert not len(trace.ops)


def test_times_since_an_unknown_start_have_an_unknown_clock(tmp_path: Path) -> None:
    trace = read(tmp_path, [kernel("k", 12.5, 1)])
    assert (trace.sources[0].clock, trace.kernels.start_ns[0]) == (ClockDomain.UNKNOWN, 12500)
    assert not trace.sources[0].has_host_calls


def test_a_base_is_not_added_to_times_of_day(tmp_path: Path) -> None:
    trace = read(
        tmp_path, [kernel("k", 1712166678123456.789, 1)], baseTimeNanoseconds=1712166678000000000
    )
    assert abs(int(trace.kernels.start_ns[0]) - 1712166678123456789) < 1000
    assert problem(trace, "baseTimeNanoseconds was not added").severity == "warning"


def test_nanoseconds_of_the_text_are_kept(tmp_path: Path) -> None:
    text = (
        '[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,"ts":1712166678123456.789,'
        '"dur":0.0015,"args":{}}]'
    )
    trace = readers.read(write(tmp_path / "t.json", text))
    assert (trace.kernels.start_ns[0], trace.kernels.dur_ns[0]) == (1712166678123456789, 2)
    assert problem(trace, "below a nanosecond").count == 1


@pytest.mark.parametrize(
    ("call", "workgroups"),
    [
        ("hipLaunchKernel", 1000),
        ("hipModuleLaunchKernel", 1000),
        ("hipExtLaunchKernel", 1000),
        ("hipLaunchKernel_spt", 1000),
        ("hipExtModuleLaunchKernel", 4),
        ("hipGraphLaunch", NULL),
        ("hipSomethingNew", NULL),
        (None, NULL),
    ],
)
@pytest.mark.parametrize("on_call", [False, True])
def test_grid_units_of_rocm(
    tmp_path: Path, call: str | None, workgroups: int, on_call: bool
) -> None:
    size = {"grid": [1000, 1, 1], "block": [256, 1, 1]}
    events = [kernel("k", 5, 1, correlation=3, kind="Dispatch Kernel", **({} if on_call else size))]
    if call:
        events.append(launch(call, 1, 2, 3, **(size if on_call else {}), shared_memory=64))
    trace = read(tmp_path, events)
    assert trace.kernels.workgroups.tolist() == [workgroups]
    assert trace.kernels.workgroup_count_x.tolist() == [workgroups]
    assert trace.kernels.lds_dynamic_bytes.tolist() == [64 if call else NULL]
    assert trace.devices[0].vendor == "amd"
    assert any("no launch geometry" in p.message for p in trace.problems) == (workgroups == NULL)


@pytest.mark.parametrize("grid", ["2x2", [], [1, 2, 3, 4], [0, 1, 1], [-1], None, [1.5], {"x": 1}])
def test_a_grid_that_is_none_is_null(tmp_path: Path, grid: Any) -> None:
    assert read(
        tmp_path, [kernel("k", 5, 1, grid=grid, block=[1])]
    ).kernels.workgroups.tolist() == [NULL]


def test_device_and_stream_without_arguments_are_pid_and_tid(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            event("kernel", "k", 1, 1, pid=10, tid=3),
            event("kernel", "k", 3, 1, pid="9", tid=3),
            {**event("kernel", "k", 2, 1, pid=2, tid=0), "args": None},
        ],
    )
    assert [d.index for d in trace.devices] == ["2", "9", "10"]
    assert trace.kernels.device.tolist() == [2, 1, 0]
    assert [(trace.devices[s.device].index, s.name) for s in trace.streams] == [
        ("2", "0"),
        ("9", "3"),
        ("10", "3"),
    ]


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ([{"id": 0, "name": "A"}, {"id": 2, "name": "B"}], "B"),
        ([{"id": 0, "name": "A"}], "A"),
        ([{"id": 0, "name": "A"}, {"id": 1, "name": "A"}], "A"),
        ([{"id": 0, "name": "A"}, {"id": 1, "name": "B"}], ""),
        ([], ""),
        ("nonsense", ""),
    ],
)
def test_device_names_are_not_guessed(tmp_path: Path, properties: Any, name: str) -> None:
    trace = read(tmp_path, [kernel("k", 1, 1, device=2)], deviceProperties=properties)
    assert trace.devices[0].name == name
    assert any("deviceProperties" in p.message for p in trace.problems) == (
        properties == "nonsense"
    )


@pytest.mark.parametrize(
    ("name", "kind", "ends"),
    [
        ("Memcpy HtoD (Host -> Device)", "h2d", (NULL, 0)),
        ("Memcpy DtoH (Device -> Pageable)", "d2h", (0, NULL)),
        ("Memcpy DtoD (Device -> Device)", "d2d", (0, 0)),
        ("Memcpy PtoP (Device -> Device)", "p2p", (NULL, NULL)),
        ("Memcpy HtoH (Host -> Host)", "h2h", (NULL, NULL)),
        ("Memcpy HtoA (Host -> Array)", "h2d", (NULL, 0)),
        ("CopyHostToDevice", "unknown", (NULL, NULL)),
    ],
)
def test_directions_of_copies(tmp_path: Path, name: str, kind: str, ends: tuple[int, int]) -> None:
    trace = read(
        tmp_path,
        [
            event(
                "gpu_memcpy",
                name,
                1,
                1,
                pid=0,
                tid=7,
                device=0,
                stream=7,
                bytes="4096",
                correlation=1,
            )
        ],
    )
    assert texts(trace, trace.copies.kind) == [kind]
    assert (trace.copies.src_device[0], trace.copies.dst_device[0]) == ends
    assert trace.copies.bytes.tolist() == [4096]


def test_devices_of_a_copy_between_two(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            event(
                "gpu_memcpy",
                "Memcpy PtoP (Device -> Device)",
                1,
                1,
                pid=1,
                tid=7,
                device=1,
                stream=7,
                fromDevice=1,
                toDevice=3,
            )
        ],
    )
    assert [d.index for d in trace.devices] == ["1", "3"]
    assert (trace.copies.src_device[0], trace.copies.dst_device[0]) == (0, 1)


@pytest.mark.parametrize(
    ("call", "recorded", "asked", "size"),
    [
        ("hipMemcpyAsync", {"bytes": 1}, {}, NULL),
        ("hipMemcpyAsync", {"bytes": 1}, {"bytes": "1"}, 1),
        ("hipMemcpyAsync", {}, {"size": "2560"}, 2560),
        ("hipMemcpyAsync", {"bytes": 1}, {"bytes": "512"}, 512),
        ("cudaMemcpyAsync", {"bytes": 1}, {}, 1),
        ("hipMemcpyAsync", {"bytes": 64}, {}, 64),
        ("cudaMemcpyAsync", {"bytes": "many"}, {}, NULL),
    ],
)
def test_sizes_of_copies(
    tmp_path: Path, call: str, recorded: dict[str, Any], asked: dict[str, Any], size: int
) -> None:
    copy = event(
        "gpu_memcpy",
        "Memcpy DtoD (Device -> Device)",
        5,
        1,
        pid=0,
        tid=0,
        device=0,
        stream=0,
        correlation=9,
        **recorded,
    )
    trace = read(tmp_path, [copy, launch(call, 1, 2, 9, **asked)])
    assert trace.copies.bytes.tolist() == [size]
    dropped = call.startswith("hip") and size == NULL
    assert any("size of one byte" in p.message for p in trace.problems) == dropped


def test_records_stamped_as_kernels_stay_kernels(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [kernel("__amd_rocclr_copyBuffer", 1, 1), kernel("MEMORY_COPY_DEVICE_TO_HOST", 3, 1)],
    )
    assert len(trace.kernels) == 2
    assert len(trace.copies) == 0


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("hipLaunchKernel", "hip"),
        ("cudaLaunchKernel", "cuda"),
        ("cuLaunchKernelEx", "cuda_driver"),
        ("hsa_queue_create", "hsa"),
        ("ncclAllReduce", "rccl"),
        ("urEnqueueKernelLaunch", "runtime"),
    ],
)
def test_domains_of_calls(tmp_path: Path, name: str, domain: str) -> None:
    trace = read(tmp_path, [launch(name, 1, 1, 1)])
    assert texts(trace, trace.api.domain) == [domain]


def test_kernels_of_one_graph_launch_share_its_call(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            launch("hipGraphLaunch", 1, 5, 77, tid=8),
            *(kernel(f"k{i}", 10 + i, 1, correlation=77) for i in range(3)),
        ],
    )
    assert trace.kernels.tid.tolist() == [8, 8, 8]
    assert trace.kernels.correlation.tolist() == [77] * 3


def test_the_graph_that_kernels_name_says_which_replays_lost_some(tmp_path: Path) -> None:
    """Of the replays of graph 4 one lacks two kernels; graph 5 has one kernel always."""
    events: list[Any] = [
        launch("cudaLaunchKernel", 0, 1, 1),
        kernel("k", 0, 1, correlation=1, graph_id=0),
    ]
    for number, (graph, count) in enumerate(((4, 3), (5, 1), (4, 1), (5, 1), (4, 3)), 2):
        events.append(launch("cudaGraphLaunch", 100 * number, 5, number))
        events += [
            kernel("k", 100 * number + 10 * node, 9, correlation=number, graph_id=graph)
            for node in range(count)
        ]
    trace = read(tmp_path, events)
    assert trace.kernels.graph.tolist() == [-1, 4, 4, 4, 5, 4, 5, 4, 4, 4]
    losses = graph_losses(trace, work_of(trace))
    assert [losses.shown.tolist(), losses.lost.tolist()] == [[1], [2]]


def test_of_two_calls_with_one_id_the_launch_counts(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            event("cuda_runtime", "cudaOccupancyQuery", 0, 1, tid=1, correlation=4),
            launch("cudaLaunchKernel", 1, 5, 4, tid=2),
            event("cuda_driver", "cuLaunchKernel", 2, 1, tid=3, correlation=4),
            kernel("k", 9, 1, correlation=4),
        ],
    )
    assert trace.kernels.tid.tolist() == [2]


def test_a_kernel_without_its_call_belongs_to_the_only_process(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [launch("cudaLaunchKernel", 1, 2, 1), kernel("k", 5, 1, correlation=2), kernel("k", 7, 1)],
    )
    assert trace.kernels.pid.tolist() == [HOST, HOST]
    assert trace.kernels.tid.tolist() == [NULL, NULL]
    two = read(
        tmp_path,
        [
            launch("cudaLaunchKernel", 1, 2, 1),
            {**launch("cudaLaunchKernel", 1, 2, 3), "pid": 5},
            kernel("k", 5, 1, correlation=2),
        ],
    )
    assert two.kernels.pid.tolist() == [NULL]


def test_operator_by_time_where_ids_repeat_the_correlation(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            op("outer", 0, 100, 1),
            op("inner", 10, 50, 2),
            op("elsewhere", 10, 50, 55, tid=9),
            op("later", 70, 10, 56),
            launch("cudaLaunchKernel", 20, 5, 55, External_id=55),
            launch("cudaLaunchKernel", 65, 2, 56, External_id=56),
            kernel("a", 40, 1, correlation=55, External_id=55),
            kernel("b", 90, 1, correlation=56, External_id=56),
            kernel("c", 95, 1, correlation=2, External_id=2),
        ],
    )
    names = [texts(trace, trace.ops.name)[row] if row != NULL else "" for row in trace.kernels.op]
    assert names == ["inner", "outer", ""]
    assert trace.ops.depth.tolist() == [0, 1, 0, 1]


def test_operator_by_id_without_the_call(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            op("outer", 0, 100, 1),
            op("inner", 10, 50, 2),
            kernel("a", 400, 1, correlation=55, External_id=2),
        ],
    )
    assert trace.kernels.op.tolist() == [1]


def test_an_id_that_repeats_the_correlation_names_no_operator_of_its_kernel(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            op("before", 0, 5, 3),
            op("mm", 10, 20, 2),
            launch("hipExtModuleLaunchKernel", 12, 3, 22, External_id=2),
            kernel("launched before the recording", 5, 100, correlation=3, External_id=3),
            kernel("launched in it", 110, 100, correlation=22, External_id=2),
            event("gpu_memset", "Memset", 300, 5, pid=0, correlation=3, External_id=3, device=0),
        ],
    )
    assert trace.kernels.op.tolist() == [NULL, 1]
    assert trace.copies.op.tolist() == [NULL]


@pytest.mark.parametrize(
    ("begins", "external", "tid", "found"),
    [
        (10, 1, 100, "own"),
        (0, 1, 100, "own"),  # 10 µs before it
        (-0.001, 1, 100, ""),
        (5, 7, 100, ""),  # the id says that it is none
        (5, 1, 200, ""),  # another thread's call
        (-25, 1, 100, "other"),  # it lies in one that it does not name
    ],
)
def test_a_launch_just_before_the_operator_that_it_names_belongs_to_it(
    tmp_path: Path, begins: float, external: int, tid: int, found: str
) -> None:
    trace = read(
        tmp_path,
        [
            op("other", 70, 10, 2),
            op("own", 110, 20, 1),
            kernel("k", 200, 9, correlation=7, External_id=external),
            launch("hipLaunchKernel", 100 + begins, 3, 7, tid=tid, External_id=external),
        ],
    )
    op_row = int(trace.kernels.op[0])
    assert (texts(trace, trace.ops.name)[op_row] if op_row != NULL else "") == found


def test_marks_of_our_own_and_of_users(tmp_path: Path) -> None:
    names = [
        "profharness.point:torch-b4~1",
        "profharness.trial:torch-b4~1:12",
        "profharness.warmup:torch-b4~1:0",
        "profharness.step:3:64",
        "profharness.step:4",
        "profharness.range:load data",
        "profharness.marker:2",
        "my range",
        "profharness.odd",
        "ProfilerStep#9",
    ]
    trace = read(tmp_path, [event("user_annotation", name, i, 1) for i, name in enumerate(names)])
    marks = trace.marks
    assert texts(trace, marks.kind) == [
        "point",
        "trial",
        "warmup",
        "step",
        "step",
        "range",
        "marker",
        "range",
        "range",
        "step",
    ]
    assert texts(trace, marks.name) == [*names[:5], "load data", *names[6:]]
    assert texts(trace, marks.point)[:4] == ["torch-b4~1"] * 3 + [""]
    assert marks.items.tolist() == [NULL] * 3 + [64] + [NULL] * 6


def test_damaged_events_are_counted_and_the_rest_kept(tmp_path: Path) -> None:
    without_start = kernel("no start", 1, 1)
    del without_start["ts"]
    without_duration = kernel("no duration", 2, 1)
    del without_duration["dur"]
    trace = read(
        tmp_path,
        [
            without_start,
            without_duration,
            kernel("negative", 3, -1),
            kernel("text", "soon", 1),
            kernel("fine", 5, 1, correlation=2),
            {**kernel("bad arguments", 7, 1), "args": [1]},
            {**kernel("flow", 8, 1), "ph": "s"},
            {"no": "keys"},
            "no event",
            {**kernel("x", 9, 1), "name": None},
        ],
    )
    assert texts(trace, trace.kernels.name) == [
        "no duration",
        "negative",
        "fine",
        "bad arguments",
        "",
    ]
    assert trace.kernels.dur_ns.tolist() == [0, 0, 1000, 1000, 1000]
    assert problem(trace, "no readable start").count == 2
    assert problem(trace, "no readable duration").count == 1
    assert problem(trace, "negative duration").count == 1
    assert problem(trace, "arguments of unexpected form").count == 1
    assert problem(trace, "no valid JSON, or of an unexpected form").count == 1
    assert "kernel that is no span 1" in problem(trace, "were left out: ").message


def test_repeated_kernels_are_counted_and_kept(tmp_path: Path) -> None:
    twin = kernel("k", 5, 1, correlation=2)
    trace = read(
        tmp_path,
        [twin, kernel("other", 5, 1, correlation=3), twin, kernel("k", 5, 1, correlation=4), twin],
    )
    assert len(trace.kernels) == 5
    assert problem(trace, "repeat another").count == 2


def test_unusual_numbers(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            event(
                "cuda_runtime", "cudaLaunchKernel", 1, 1, pid="12", tid=2**64 - 5, correlation="34"
            ),
            event("cuda_runtime", "cudaLaunchKernel", 2, 1, pid="Spans", tid=3.0, correlation=None),
        ],
    )
    assert trace.api.pid.tolist() == [12, NULL]
    assert trace.api.tid.tolist() == [-5, 3]
    assert trace.api.correlation.tolist() == [34, NULL]


def test_header_values_of_unexpected_form_are_named(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [kernel("k", 1, 1)],
        baseTimeNanoseconds="tomorrow",
        distributedInfo=[1],
        host_name={"a": 1},
    )
    assert trace.sources[0].clock is ClockDomain.UNKNOWN
    assert problem(trace, "keys have values").count == 3


def test_the_sidecar_says_what_the_file_does_not(tmp_path: Path) -> None:
    write(
        tmp_path / "t.json.profharness.json",
        {
            "v": 1,
            "host": "node3",
            "pid": 7,
            "rank": 2,
            "point": "torch-b4",
            "window": {"kind": "steps", "truncated": True, "reason": "1000000 events"},
        },
    )
    trace = read(tmp_path, [kernel("k", 1, 1)])
    source = trace.sources[0]
    assert (source.host, source.pid, source.rank, source.point) == ("node3", 7, 2, "torch-b4")
    assert trace.kernels.rank.tolist() == [2]
    assert problem(trace, "the capture window ended early: 1000000 events")


def test_a_damaged_sidecar_does_not_cost_the_trace(tmp_path: Path) -> None:
    write(tmp_path / "t.json.profharness.json", "{")
    trace = read(tmp_path, [kernel("k", 1, 1)])
    assert len(trace.kernels) == 1
    assert problem(trace, "profharness.json cannot be read").severity == "warning"


def many(count: int) -> list[Any]:
    rng = random.Random(4)
    events: list[Any] = []
    for i in range(count):
        t = 20 * i
        name = rng.choice(["gemm<{a}>", 'quo"te', "back\\slash", "}, {"])
        events += [
            op(f"aten::{name}", t, 15, i + 1, tid=rng.choice([100, 101]), Input_Dims=[[i % 3, 2]]),
            launch("hipLaunchKernel", t + 1, 2, i, grid=[i + 1, 1, 1], block=[64, 1, 1]),
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": i, "ts": t, "pid": 1, "tid": 1},
            kernel(
                name,
                t + 5 + rng.randrange(1000) / 1000,
                rng.randrange(5000) / 1000,
                device=rng.choice([0, 11, 2]),
                stream=rng.choice([3, 0]),
                correlation=i,
                External_id=i + 1,
            ),
            event(
                rng.choice(["gpu_memcpy", "gpu_memset"]),
                "Memcpy HtoD (Host -> Device)",
                t + 9,
                1,
                pid=0,
                tid=9,
                device=0,
                stream=9,
            ),
            event("user_annotation", f"range {i % 4}", t, 9),
        ]
    return events


def decoded(trace: Trace) -> dict[str, Any]:
    def column(table: Table, name: str, metadata: Any) -> list[Any]:
        values = getattr(table, name)
        return (
            trace.strings.decode(values)
            if metadata["unit"] == "string"
            else values.astype(str).tolist()
        )

    tables = {
        table: {name: column(t, name, f.metadata) for name, f in t.__dataclass_fields__.items()}
        for table, t in trace.tables()
    }
    return {
        "tables": tables,
        "devices": trace.devices,
        "streams": trace.streams,
        "sources": trace.sources,
        "problems": trace.problems,
    }


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30_000), st.booleans())
def test_any_block_size_gives_the_same_trace(
    tmp_path_factory: pytest.TempPathFactory, block: int, compressed: bool
) -> None:
    path = tmp_path_factory.mktemp("blocks") / ("t.json.gz" if compressed else "t.json")
    write(
        path,
        document(many(30), baseTimeNanoseconds=1_700_000_000_000_000_000, roctracer_version=4.1),
        indent=1,
    )
    assert decoded(chrome_json.read_blocks(path, block_bytes=block)) == decoded(
        chrome_json.read(path)
    )


def test_shapes_stand_under_the_name_of_2021_too(tmp_path: Path) -> None:
    """libkineto wrote `Input dims` before torch wrote `Input Dims`."""
    events = [
        event("Operator", "aten::mm", 0, 10, Input_dims=[[2, 3], [3, 4]], External_id=1),
        event("Operator", "aten::relu", 20, 10, External_id=2),
    ]
    trace = chrome_json.read(write(tmp_path / "t.json", document(events)))
    assert trace.strings[trace.ops.shapes[0]] == "[[2, 3], [3, 4]]"
    assert trace.ops.shapes[1] == NULL


ODD = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "C", "name": "Power (W)", "pid": "GPU 0 Counters", "ts": 1, "args": {"": 300.5}},
    {**kernel("k", 1, 1), "ph": "B"},
    {**kernel("k", 1, 1), "args": None},
    {**kernel("k", 1, 1, device={"id": 1})},
    {**kernel("k", "1.5", None)},
    event("overhead", "buffer", 1, 1),
    event("Kernel", "old", 1, 1, device=0, stream=1),
    {**op("mm", 1, 1, 1), "cat": None},
    {key: value for key, value in op("mm", 1, 1, 1).items() if key != "ph"},
    event("python_function", "f", 1, 1),
    {"cat": "fwdbwd", "ph": "s", "id": 1},
    event("cuda_driver", "cuLaunchKernel", 1, 1, correlation="7"),
    event("user_annotation", "gloo:all_reduce", 1, 1),
    op("ProfilerStep#7", 1, 5, 3),
    {**event("cpu_op", "gloo:broadcast", 1, 1), "args": None},
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 180), st.sampled_from(ODD)), max_size=4),
    st.integers(200, 9000),
    st.sampled_from(Wanted),
)
def test_usual_blocks_say_what_any_other_would(
    tmp_path_factory: pytest.TempPathFactory, odd: list[tuple[int, Any]], block: int, wanted: Wanted
) -> None:
    events = many(30)
    for place, one in odd:
        events.insert(place, one)
    path = write(
        tmp_path_factory.mktemp("usual") / "t.json",
        document(events, baseTimeNanoseconds=1_700_000_000_000_000_000),
    )
    found = decoded(chrome_json.read_blocks(path, block_bytes=block, wanted=wanted))
    with pytest.MonkeyPatch.context() as patched:
        for rows in (KinetoRows, DeviceRows, TimeRows):
            patched.setattr(rows, "usual", None)
        assert found == decoded(chrome_json.read_blocks(path, block_bytes=block, wanted=wanted))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 180), st.sampled_from(ODD)), max_size=4),
    st.integers(200, 9000),
    st.booleans(),
)
def test_device_records_are_the_same_however_much_is_wanted(
    tmp_path_factory: pytest.TempPathFactory, odd: list[tuple[int, Any]], block: int, rocm: bool
) -> None:
    events = many(30)
    for place, one in odd:
        events.insert(place, one)
    keys = {"roctracer_version": 4.1} if rocm else {"cupti_version": 18}
    path = write(tmp_path_factory.mktemp("wanted") / "t.json", document(events, **keys))
    whole, devices, times = (
        chrome_json.read_blocks(path, block_bytes=block, wanted=wanted)
        for wanted in (Wanted.ALL, Wanted.DEVICES, Wanted.TIMES)
    )
    assert_same_work(whole, times, ("start_ns", "dur_ns", "name", "device"))
    assert_same_work(
        whole, devices, ("start_ns", "dur_ns", "name", "device", "stream", "correlation")
    )
    assert devices.streams == whole.streams
    for column in (
        "workgroups",
        "workgroup_count_x",
        "workgroup_count_y",
        "workgroup_size_x",
        "workgroup_size_y",
    ):
        assert getattr(devices.kernels, column).tolist() == getattr(whole.kernels, column).tolist()


def assert_same_work(whole: Trace, part: Trace, columns: tuple[str, ...]) -> None:
    assert [(one.index, one.name) for one in part.devices] == [
        (one.index, one.name) for one in whole.devices
    ]
    for name in columns:
        for ours, theirs in ((part.kernels, whole.kernels), (part.copies, whole.copies)):
            found, expected = getattr(ours, name), getattr(theirs, name)
            if name == "name":
                assert texts(part, found) == texts(whole, expected)
            else:
                assert found.tolist() == expected.tolist()


def test_where_calls_share_an_id_their_durations_decide_however_little_is_wanted(
    tmp_path: Path,
) -> None:
    """The longest of several launches counts: here the one that states its grid in work-items."""
    path = write(
        tmp_path / "t.json",
        document(
            [
                launch("hipLaunchKernel", 1, 2, 7),
                launch("hipExtModuleLaunchKernel", 1, 5, 7),
                launch("hipLaunchKernel", 9, 2, 8),
                kernel("k", 20, 3, correlation=7, grid=[640, 1, 1], block=[64, 1, 1]),
                kernel("k", 30, 3, correlation=8, grid=[640, 1, 1], block=[64, 1, 1]),
            ],
            roctracer_version=4.1,
        ),
    )
    for wanted in (Wanted.ALL, Wanted.DEVICES):
        assert readers.read(path, wanted=wanted).kernels.workgroups.tolist() == [10, 640]


@pytest.mark.parametrize(("stream", "said"), [(7, True), (8, False)])
def test_kernels_that_repeat_are_told_from_those_of_two_streams_however_little_is_wanted(
    tmp_path: Path, stream: int, said: bool
) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            [
                kernel("k", 20, 3, correlation=7, stream=7),
                kernel("k", 20, 3, correlation=7, stream=stream),
            ]
        ),
    )
    for wanted in Wanted:
        assert (
            any(
                "repeat another" in found.message
                for found in readers.read(path, wanted=wanted).problems
            )
            == said
        )


def test_a_cut_file_keeps_its_events_and_says_so(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": many(50), "baseTimeNanoseconds": 1_700_000_000_000_000_000})
    trace = readers.read(write(tmp_path / "t.json", text[: len(text) // 2]))
    assert 20 <= len(trace.kernels) < 30
    assert problem(trace, "cut or damaged").severity == "error"
    assert trace.sources[0].clock is ClockDomain.UNKNOWN
    assert problem(trace, "clock base").severity == "warning"


def test_a_cut_gzip_keeps_its_events_and_says_so(tmp_path: Path) -> None:
    text = json.dumps(document(many(300), baseTimeNanoseconds=1_700_000_000_000_000_000))
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(text.encode())[:-2000])
    trace = readers.read(tmp_path / "t.json.gz")
    assert 0 < len(trace.kernels) < 300
    assert problem(trace, "cut or damaged").severity == "error"
    assert trace.sources[0].clock is ClockDomain.REALTIME


def test_a_list_of_events_without_an_object(tmp_path: Path) -> None:
    trace = readers.read(write(tmp_path / "t.json", [kernel("k", 1, 1)]))
    assert len(trace.kernels) == 1


def test_an_empty_trace_is_a_trace(tmp_path: Path) -> None:
    trace = read(tmp_path, [])
    assert all(len(table) == 0 for _, table in trace.tables())
    assert trace.problems == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.json", "", "is empty"),
        (
            "cut.json",
            '{"schemaVersion": 1, "traceEvents": [ {"ph": "X", "na',
            "no readable trace event",
        ),
        ("none.json", '{"schemaVersion": 1, "deviceProperties": []}', "no list of trace events"),
        ("garbage.json", b"\x00\xff\x07garbage" * 100, "no known trace format"),
        ("text.txt", "hello", "no known trace format"),
        ("cut.json.gz", gzip.compress(b"{}" * 50, mtime=0)[:10], "ends early"),
        ("damaged.json.gz", b"\x1f\x8b\x08\x00" + bytes(50), "damaged"),
    ],
)
def test_what_cannot_be_read_is_an_input_error_with_a_hint(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        readers.read(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 4


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError):
            readers.read(path)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_flipped_bytes_never_give_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(json.dumps(document(many(6))).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.mktemp("flipped") / "t.json", bytes(content))
    try:
        trace = readers.read(path)
    except InputError:
        return
    assert len(trace.kernels) <= 8


TORCH = """
import os, sys, time
import torch
from torch.profiler import ProfilerActivity, profile, record_function
torch.set_num_threads(1)
model, x = torch.nn.Linear(8, 8), torch.randn(4, 8)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, profile_memory=True) as p:
    before = time.time_ns()
    for i in range(3):
        with record_function(f"profharness.step:{i}:4"):
            model(x).sum().backward()
    after = time.time_ns()
p.export_chrome_trace(sys.argv[1])
print(before, after, os.getpid())
"""


@pytest.mark.parametrize("is_usual", [True, False])
def test_an_odd_name_of_a_kernel_costs_the_call_nothing_else(
    tmp_path: Path, *, is_usual: bool
) -> None:
    odd = [] if is_usual else [{"ph": "M", "name": "process_name", "pid": 0}]
    given = [
        launch("hipLaunchKernel", 10 * at, 1, 5 + at, kernel=named, grid=[2, 1, 1])
        for at, named in enumerate(("gemm", 7, None, ""))
    ]
    path = write(tmp_path / "t.json", document([*given, *odd]))
    trace = chrome_json.read_blocks(path, wanted=Wanted.LAUNCHED)
    assert trace.api.correlation.tolist() == [5, 6, 7, 8]
    assert texts(trace, trace.api.kernel) == ["gemm", "7", "", ""]
    assert not any("arguments" in problem.message for problem in trace.problems)


@pytest.mark.slow
def test_a_trace_of_the_real_profiler(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", TORCH, str(tmp_path / "t.json.gz")],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    before, after, pid = map(int, done.stdout.split())
    trace = readers.read(tmp_path / "t.json.gz")
    assert (trace.sources[0].clock, trace.sources[0].pid) == (ClockDomain.REALTIME, pid)
    assert texts(trace, trace.marks.kind) == ["step"] * 3
    assert trace.marks.items.tolist() == [4] * 3
    assert before <= trace.marks.start_ns.min()
    assert (trace.marks.start_ns + trace.marks.dur_ns).max() <= after
    names = texts(trace, trace.ops.name)
    assert names.count("aten::linear") == 3
    inner = trace.ops.take([i for i, n in enumerate(names) if n == "aten::addmm"])
    assert (inner.depth >= 1).all()
    assert "[4, 8]" in texts(trace, inner.shapes)[0]
    assert [p.severity for p in trace.problems] == ["info"]
