"""The export of torch.autograd.profiler of before Kineto: operators and device time on two
processes.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.readers.logs import autograd
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import write


def span(pid: str, name: str, ts: Any, dur: Any, tid: Any) -> dict[str, Any]:
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": {}}


def host(name: str, ts: Any, dur: Any, tid: Any = 1) -> dict[str, Any]:
    return span("CPU functions", name, ts, dur, tid)


def device(name: str, ts: Any, dur: Any, tid: Any = "stream0") -> dict[str, Any]:
    return span("CUDA functions", name, ts, dur, tid)


def arrow(phase: str) -> dict[str, Any]:
    pid = "CPU functions" if phase == "s" else "CUDA functions"
    return {"name": "x", "ph": phase, "ts": 1, "tid": 1, "pid": pid, "id": 0, "cat": "cpu_to_cuda"}


def trace_of(tmp_path: Path, *events: dict[str, Any], wanted: Wanted = Wanted.ALL) -> Trace:
    return readers.read(write(tmp_path / "t.json", list(events)), wanted=wanted)


NESTED = [
    host("aten::linear", 0, 50),
    device("aten::linear", 5, 90),
    host("aten::addmm", 5, 40),
    device("aten::addmm", 10, 80.5),
    host("aten::relu", 60.25, 10),
    device("aten::relu", 100, 20),
]


def test_operators_and_the_device_time_of_the_innermost(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, *NESTED)
    assert trace.strings.decode(trace.ops.name) == ["aten::linear", "aten::addmm", "aten::relu"]
    assert trace.ops.depth.tolist() == [0, 1, 0]
    assert trace.ops.start_ns.tolist() == [0, 5_000, 60_250]
    assert trace.strings.decode(trace.kernels.name) == ["aten::addmm", "aten::relu"]
    assert trace.kernels.start_ns.tolist() == [10_000, 100_000]
    assert trace.kernels.dur_ns.tolist() == [80_500, 20_000]
    assert trace.kernels.op.tolist() == [1, 2]
    assert [(one.index, one.vendor) for one in trace.devices] == [("0", "")]
    assert [one.name for one in trace.streams] == ["0"]
    assert trace.sources[0].format == "torch-autograd"
    assert [(p.severity, p.count) for p in trace.problems] == [("info", 1)]


def test_kernels_with_names_of_their_own_belong_to_the_operator_before_them(
    tmp_path: Path,
) -> None:
    trace = trace_of(
        tmp_path,
        device("early", 0, 1, 0),
        host("aten::mm", 10, 20),
        arrow("s"),
        arrow("f"),
        device("sgemm_128x64", 15, 30, 1),
        device("splitKreduce", 20, 5, 1),
        host("aten::add", 50, 5, " node_id:1, thread_id:2 "),
        device("aten::mm", 60, 5, 1),
    )
    assert trace.kernels.op.tolist() == [NULL, 0, 0, NULL]
    assert [one.index for one in trace.devices] == ["0", "1"]
    assert trace.kernels.device.tolist() == [0, 1, 1, 1]
    assert trace.kernels.stream.tolist() == [NULL] * 4
    assert trace.ops.tid.tolist() == [1, NULL]
    assert not trace.problems


def test_operators_alone_and_kernels_alone(tmp_path: Path) -> None:
    """torch of today exports the operators and arrows without an end."""
    trace = trace_of(tmp_path, host("aten::mm", 1, 2), arrow("s"))
    assert (len(trace.ops), len(trace.kernels), trace.devices) == (1, 0, ())
    assert not trace.problems
    devices = trace_of(tmp_path, *NESTED, wanted=Wanted.DEVICES)
    assert (len(devices.ops), devices.kernels.op.tolist()) == (0, [NULL, NULL])


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        host("aten::mm", None, 2),
        host("aten::mm", 1, -2),
        {**host("aten::mm", 1, 2), "ph": "i"},
        span("elsewhere", "x", 1, 1, 1),
        host("aten::mm", 1, 2),
    )
    assert len(trace.ops) == 1
    assert [(p.severity, p.count) for p in trace.problems] == [("warning", 2), ("info", 2)]


def test_many_streams_and_many_unknown_kinds_cost_no_more_than_their_number(tmp_path: Path) -> None:
    """Twice the streams took four times the time, and every kind was told."""
    spans = [span("CUDA functions", "k", n, 1, f"stream{n}") for n in range(30_000)]
    others = [span(f"process {n}", "x", 1, 1, 1) for n in range(25)]
    began = time.process_time()
    trace = autograd.read(write(tmp_path / "t.json", [host("aten::mm", 0, 2), *spans, *others]))
    assert time.process_time() - began < 5
    assert len(trace.streams) == 30_000
    assert trace.problems[-1].message.endswith("pid=process 4 1, 5 more kinds")


@pytest.mark.parametrize("block", [2, 100, 1 << 20])
def test_any_block_size_and_a_cut_file(tmp_path: Path, block: int) -> None:
    path = write(tmp_path / "t.json", NESTED)
    assert len(autograd.read_blocks(path, block_bytes=block).kernels) == 2
    text = json.dumps(NESTED)
    cut = write(path, text[: text.index("aten::relu")])
    trace = autograd.read_blocks(cut, block_bytes=block)
    assert (len(trace.kernels), trace.problems[0].severity) == (1, "error")
    with pytest.raises(InputError):
        readers.read(write(path, text[:60]))
