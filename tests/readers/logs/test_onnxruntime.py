from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.analysis.verdict.integrity import from_problems
from profharness.errors import InputError
from profharness.readers.logs import onnxruntime as onnxruntime_json
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import write


def node(name: str, op: str, ts: int, dur: int, *, tid: int = 9, **args: Any) -> dict[str, Any]:
    return {
        "cat": "Node",
        "pid": 9,
        "tid": tid,
        "dur": dur,
        "ts": ts,
        "ph": "X",
        "name": f"{name}_kernel_time",
        "args": {
            "op_name": op,
            "node_index": "0",
            "provider": "CPUExecutionProvider",
            "input_type_shape": [{"float": [4, 8]}],
            "thread_scheduling_stats": "",
            **args,
        },
    }


def session(name: str, ts: int, dur: int) -> dict[str, Any]:
    return {
        "cat": "Session",
        "pid": 9,
        "tid": 9,
        "dur": dur,
        "ts": ts,
        "ph": "X",
        "name": name,
        "args": {},
    }


RUNS = [
    session("session_initialization", 1, 100),
    node("mm", "MatMul", 210, 30),
    node("sm", "Softmax", 245, 0),
    session("SequentialExecutor::Execute", 205, 60),
    session("model_run", 200, 70),
    node("mm", "MatMul", 310, 20),
    session("model_run", 300, 50),
]


def layout(events: list[Any]) -> str:
    """As the tool lays it out: one event a line, blanks around some colons."""
    return "[\n" + ",\n".join(json.dumps(e, separators=(",", " :")) for e in events) + "\n]\n"


def read(tmp_path: Path, events: list[Any], **sidecar: Any) -> Trace:
    if sidecar:
        write(tmp_path / "p.json.profharness.json", {"v": 1, **sidecar})
    return readers.read(write(tmp_path / "p.json", layout(events)))


def test_nodes_are_operators_and_runs_are_ranges(tmp_path: Path) -> None:
    trace = read(tmp_path, RUNS)
    assert trace.strings.decode(trace.ops.name) == ["MatMul", "Softmax", "MatMul"]
    assert trace.ops.start_ns.tolist() == [210_000, 245_000, 310_000]
    assert trace.ops.dur_ns.tolist() == [30_000, 0, 20_000]
    assert trace.ops.depth.tolist() == [0, 0, 0]
    assert json.loads(trace.strings.decode(trace.ops.shapes)[0]) == [{"float": [4, 8]}]
    assert trace.strings.decode(trace.marks.kind) == ["range", "range"]
    assert trace.strings.decode(trace.marks.name) == ["model_run", "model_run"]
    assert trace.marks.start_ns.tolist() == [200_000, 300_000]
    assert len(trace.kernels) == 0
    source = trace.sources[0]
    assert (source.format, source.clock, source.pid, source.has_host_calls) == (
        "onnxruntime",
        ClockDomain.UNKNOWN,
        9,
        False,
    )
    assert dict(source.details) == {
        "providers": "CPUExecutionProvider",
        "nodes CPUExecutionProvider": "MatMul 1, Softmax 1",
    }
    assert [(p.severity, p.count) for p in trace.problems] == [("info", 2)]


def test_nodes_of_each_provider_are_counted_once(tmp_path: Path) -> None:
    gpu = {"provider": "MIGraphXExecutionProvider"}
    run = [
        node("MGXKernel_graph_0", "", 10, 5, **gpu),
        *(node(f"topk{i}", "TopK", 20 + i, 1) for i in range(2)),
        node("gather", "Gather", 30, 1),
        session("model_run", 5, 40),
    ]
    trace = read(tmp_path, run + run)
    assert dict(trace.sources[0].details) == {
        "providers": "CPUExecutionProvider MIGraphXExecutionProvider",
        "nodes CPUExecutionProvider": "TopK 2, Gather 1",
        "nodes MIGraphXExecutionProvider": "MGXKernel_graph_0_kernel_time 1",
    }


def test_fences_around_a_kernel_are_no_runs_of_its_node(tmp_path: Path) -> None:
    """Older releases write two beside each."""
    fences = [
        {**session(f"mm_fence_{side}", at, 0), "cat": "Node", "args": {"op_name": "MatMul"}}
        for side, at in (("before", 209), ("after", 241))
    ]
    trace = read(tmp_path, [fences[0], node("mm", "MatMul", 210, 30), fences[1]])
    assert trace.strings.decode(trace.ops.name) == ["MatMul"]
    assert [(one.count, one.severity) for one in trace.problems] == [(2, "info")]


def test_the_sidecar_gives_the_start(tmp_path: Path) -> None:
    start = 1_795_165_980_324_238_967
    trace = read(tmp_path, RUNS, start_ns=start, host="n", rank=3, pid=9, point="ort-b1")
    assert trace.ops.start_ns[0] == start + 210_000
    assert trace.marks.start_ns[0] == start + 200_000
    assert (trace.sources[0].clock, trace.sources[0].rank, trace.sources[0].point) == (
        ClockDomain.REALTIME,
        3,
        "ort-b1",
    )
    assert trace.ops.rank.tolist() == [3] * 3


def test_runs_of_a_marker_session_are_markers_in_order(tmp_path: Path) -> None:
    trace = read(tmp_path, [RUNS[-1], RUNS[4]], start_ns=0, role="marker", markers=[[1, 2], [3, 4]])
    assert trace.strings.decode(trace.marks.kind) == ["marker"] * 2
    assert trace.strings.decode(trace.marks.name) == [
        "profharness.marker:0",
        "profharness.marker:1",
    ]
    assert trace.marks.start_ns.tolist() == [200_000, 300_000]


def on_device(name: str, parent: str, ts: int, dur: int, **args: str) -> dict[str, Any]:
    return {
        "cat": "Kernel",
        "pid": -1,
        "tid": -1,
        "dur": dur,
        "ts": ts,
        "ph": "X",
        "name": name,
        "args": {"stream": "7", "op_name": "", "parent_name": parent, **args},
    }


LAUNCH = {f"{what}_{axis}": "4" for what in ("grid", "block") for axis in "xyz"}
NONE = dict.fromkeys(LAUNCH, "-1")


def on_gpu(provider: str) -> list[dict[str, Any]]:
    """Two runs of one node that launches a kernel and a copy, as GPUProfilerBase merges them."""
    gemm = {"provider": provider}
    return [
        session("session_initialization", 1, 100),
        node("mm", "MatMul", 210, 30, **gemm),
        on_device("sgemm", "mm_kernel_time", 212, 25, **LAUNCH),
        on_device("MemcpyDeviceToHost", "mm_kernel_time", 240, 0, **NONE),
        session("model_run", 200, 70),
        node("mm", "MatMul", 310, 20, **gemm),
        on_device("sgemm", "mm_kernel_time", 311, 15, **LAUNCH),
        on_device("hipMemcpyAsync", "mm_kernel_time", 330, 2, kind="H2D"),
        on_device("lonely", "", 350, 2, **LAUNCH),
        session("model_run", 300, 50),
    ]


def test_kernels_and_copies_run_on_the_device_for_the_node_before_them(tmp_path: Path) -> None:
    trace = read(tmp_path, on_gpu("CUDAExecutionProvider"), start_ns=1_000, host="n")
    kernels, copies = trace.kernels, trace.copies
    assert trace.strings.decode(kernels.name) == ["sgemm", "sgemm", "lonely"]
    assert kernels.start_ns.tolist() == [213_000, 312_000, 351_000]
    assert kernels.dur_ns.tolist() == [25_000, 15_000, 2_000]
    assert kernels.op.tolist() == [0, 1, NULL]
    assert kernels.workgroups.tolist() == [64] * 3
    assert kernels.workgroup_size_y.tolist() == [4] * 3
    assert trace.strings.decode(copies.kind) == ["d2h", "h2d"]
    assert copies.op.tolist() == [0, 1]
    assert copies.bytes.tolist() == [NULL] * 2
    assert [(d.index, d.vendor, d.host) for d in trace.devices] == [("0", "nvidia", "n")]
    assert [(s.device, s.name) for s in trace.streams] == [(0, "7")]
    assert [p.message.partition(": ")[2] for p in trace.problems] == [
        "Session session_initialization 1"
    ]


def test_a_grid_of_rocm_has_no_known_unit(tmp_path: Path) -> None:
    """hipLaunchKernel counts workgroups and hipExtModuleLaunchKernel work-items, and the file does
    not say which of them was called.
    """
    trace = read(tmp_path, on_gpu("ROCMExecutionProvider"))
    assert [d.vendor for d in trace.devices] == ["amd"]
    assert trace.kernels.workgroups.tolist() == [NULL] * 3
    assert trace.kernels.workgroup_size_x.tolist() == [4] * 3


def test_kernels_are_there_without_the_operators(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", layout(on_gpu("CUDAExecutionProvider")))
    trace = readers.read(path, wanted=Wanted.DEVICES)
    assert (len(trace.ops), len(trace.kernels), len(trace.copies)) == (0, 3, 2)
    assert trace.kernels.op.tolist() == [NULL] * 3


def test_impossible_sizes_of_a_launch_are_not_known(tmp_path: Path) -> None:
    wide = {**LAUNCH, "grid_x": str(2**40), "grid_y": str(2**40)}
    events = [*RUNS, on_device("k", "", 400, 1, **wide), on_device("k", "", 402, 1, grid_x="x")]
    trace = read(tmp_path, events)
    assert trace.kernels.workgroups.tolist() == [NULL] * 2
    assert trace.kernels.workgroup_size_x.tolist() == [4, NULL]


def test_a_profile_at_its_limit_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of the device do not count for the limit."""
    events = on_gpu("CUDAExecutionProvider")
    monkeypatch.setattr(onnxruntime_json, "MOST_EVENTS", 5)
    assert [p.severity for p in read(tmp_path, events).problems] == ["error", "info"]
    monkeypatch.setattr(onnxruntime_json, "MOST_EVENTS", 6)
    trace = read(tmp_path, events)
    assert [p.severity for p in trace.problems] == ["info"]
    monkeypatch.setattr(onnxruntime_json, "MOST_EVENTS", 5)
    found = from_problems(read(tmp_path, events).problems)
    assert [finding.id for finding in found] == ["truncated-file"]
    assert "5 events that onnxruntime keeps of one session" in found[0].message


def test_without_operators(tmp_path: Path) -> None:
    trace = readers.read(write(tmp_path / "p.json", layout(RUNS)), wanted=Wanted.DEVICES)
    assert len(trace.ops) == 0
    assert len(trace.marks) == 2


def test_events_without_times_and_arguments(tmp_path: Path) -> None:
    broken = node("x", "Relu", 1, 1)
    del broken["ts"]
    bare = node("y", "Relu", 5, 1)
    del bare["args"]
    trace = read(
        tmp_path,
        [broken, bare, {**node("z", "Relu", 7, -1)}, node("w", "Relu", 9, 1, op_name=None)],
    )
    assert trace.strings.decode(trace.ops.name) == ["y_kernel_time", "w_kernel_time"]
    assert trace.ops.shapes[0] == NULL
    assert [p.count for p in trace.problems] == [2]


@pytest.mark.parametrize("block", [2, 100, 1 << 20])
def test_a_cut_file_and_any_block_size(tmp_path: Path, block: int) -> None:
    text = layout(RUNS)
    trace = onnxruntime_json.read_blocks(
        write(tmp_path / "p.json", text[: text.index("Softmax")]), block_bytes=block
    )
    assert trace.strings.decode(trace.ops.name) == ["MatMul"]
    assert [p.severity for p in trace.problems] == ["error", "info"]


def test_kineto_lists_are_not_taken() -> None:
    assert not onnxruntime_json.sniff(b'[{"ph": "X", "cat": "kernel"}]', "p.json")
    assert not onnxruntime_json.sniff(b'{"cat": "Node"}', "p.json")
    assert onnxruntime_json.sniff(layout(RUNS).encode(), "anything")


def test_nothing_usable(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        readers.read(write(tmp_path / "p.json", '[\n{"cat" : "Session","pid" :1'))


SCRIPT = """
import sys, time
import numpy as np, onnx, onnxruntime
from onnx import helper, TensorProto
nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm"), helper.make_node("Softmax", ["y"], ["z"], name="sm")]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
    [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4, 8])], [helper.make_tensor("w", TensorProto.FLOAT, [8, 8], np.ones(64, np.float32))])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
options = onnxruntime.SessionOptions()
options.enable_profiling, options.profile_file_prefix, options.intra_op_num_threads = True, sys.argv[1], 1
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
before = time.time_ns()
for _ in range(3):
    session.run(None, {"x": np.ones((4, 8), np.float32)})
after = time.time_ns()
print(session.get_profiling_start_time_ns(), before, after, session.end_profiling())
"""


@pytest.mark.slow
def test_a_profile_of_the_real_tool(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "p")],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    start, before, after, path = done.stdout.split()
    write(Path(path + ".profharness.json"), {"v": 1, "start_ns": int(start)})
    trace = readers.read(Path(path))
    assert trace.strings.decode(trace.ops.name) == ["MatMul", "Softmax"] * 3
    assert len(trace.marks) == 3
    assert trace.ops.start_ns.min() >= int(before) - 1000
    assert (trace.ops.start_ns + trace.ops.dur_ns).max() <= int(after) + 1000
    assert abs(time.time_ns() - int(after)) < 3600 * 10**9
