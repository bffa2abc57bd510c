"""What torch's allocator held, read as samples by device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.readers.kineto.reader import read_blocks
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import HOST, document, kernel, launch, op, write

CPU, CUDA, HIP = 0, 1, 6


def memory(
    ts: float, allocated: int, reserved: int = 0, *, kind: int = CPU, number: int = -1
) -> dict[str, Any]:
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": HOST,
        "tid": HOST,
        "ts": ts,
        "args": {
            "Total Reserved": reserved,
            "Total Allocated": allocated,
            "Bytes": 8,
            "Device Id": number,
            "Device Type": kind,
            "Addr": 94671181907648,
        },
    }


def held(trace: Trace) -> list[tuple[str, str, int, float]]:
    """(metric, device, ns, bytes) of each sample."""
    samples = trace.samples
    return [
        (
            trace.strings[int(samples.metric[row])],
            trace.devices[place].index if place != NULL else "host",
            int(samples.at_ns[row]),
            float(samples.value[row]),
        )
        for row, place in enumerate(samples.device.tolist())
    ]


def read(tmp_path: Path, events: list[Any], **keys: Any) -> Trace:
    return readers.read(write(tmp_path / "t.json", document(events, **keys)))


def test_host_and_device_are_told_apart(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        [
            launch("cudaLaunchKernel", 2, 3, 5),
            kernel("gemm", 7, 2, correlation=5, device=1),
            memory(1.5, 64),
            memory(2.25, 4096, 8192, kind=CUDA, number=1),
            memory(3, 512, 1024, kind=CUDA, number=0),
        ],
        baseTimeNanoseconds=1000,
    )
    assert held(trace) == [
        ("torch_allocated", "host", 2500, 64.0),
        ("torch_allocated", "1", 3250, 4096.0),
        ("torch_allocated", "0", 4000, 512.0),
        ("torch_reserved", "1", 3250, 8192.0),
        ("torch_reserved", "0", 4000, 1024.0),
    ]
    assert (trace.samples.until_ns == trace.samples.at_ns).all()
    assert not any("left out" in problem.message for problem in trace.problems)


def test_the_only_device_of_rocm_has_the_nodes_number(tmp_path: Path) -> None:
    of_hip = [memory(1, 10, 20, kind=HIP, number=0)]
    ran = [launch("hipLaunchKernel", 2, 3, 5), kernel("gemm", 7, 2, correlation=5, device=9)]
    assert held(read(tmp_path, [*ran, *of_hip])) == [
        ("torch_allocated", "9", 1000, 10.0),
        ("torch_reserved", "9", 1000, 20.0),
    ]


@pytest.mark.parametrize("devices", [(), (2, 3)])
def test_a_device_that_cannot_be_told_is_left_out_and_counted(
    tmp_path: Path, devices: tuple[int, ...]
) -> None:
    ran = [kernel("gemm", 7, 2, correlation=NULL, device=device) for device in devices]
    trace = read(tmp_path, [*ran, op("aten::mm", 0, 1, 1), memory(1, 10, 20, kind=HIP, number=0)])
    assert len(trace.samples) == 0
    (said,) = [problem for problem in trace.problems if "left out" in problem.message]
    assert (said.count, said.severity) == (1, "info")
    assert "cannot be told" in said.message


def test_what_states_no_totals_is_left_out(tmp_path: Path) -> None:
    spoilt = {**memory(1, 1), "ts": "soon"}
    failed = {**memory(1, 1), "name": "[OutOfMemory]"}
    bare = memory(1, 1)
    bare["args"] = {"Device Type": 0, "Device Id": -1, "Bytes": 4}
    trace = read(tmp_path, [op("aten::mm", 0, 1, 1), spoilt, failed, bare, memory(2, 7)])
    assert held(trace) == [("torch_allocated", "host", 2000, 7.0)]
    messages = " ".join(problem.message for problem in trace.problems)
    assert "cpu_instant_event 1" in messages
    assert "no readable start" in messages
    counts = [p.count for p in trace.problems if "state no total or no device" in p.message]
    assert counts == [1]


@pytest.mark.parametrize("lacking", ["Device Id", "Device Type", "Total Allocated"])
def test_what_names_no_device_is_left_out_and_adds_none(tmp_path: Path, lacking: str) -> None:
    ran = [launch("cudaLaunchKernel", 2, 3, 5), kernel("gemm", 7, 2, correlation=5, device=0)]
    bare = memory(1, 10, 20, kind=CUDA, number=3)
    del bare["args"][lacking]
    trace = read(tmp_path, [*ran, bare, memory(2, 512, 1024, kind=CUDA, number=0)])
    assert [device.index for device in trace.devices] == ["0"]
    assert held(trace) == [
        ("torch_allocated", "0", 2000, 512.0),
        ("torch_reserved", "0", 2000, 1024.0),
    ]
    (said,) = [problem for problem in trace.problems if "left out" in problem.message]
    assert (said.count, said.severity) == (1, "info")
    assert "state no total or no device" in said.message


def test_what_names_no_device_does_not_go_to_the_only_one(tmp_path: Path) -> None:
    ran = [launch("hipLaunchKernel", 2, 3, 5), kernel("gemm", 7, 2, correlation=5, device=9)]
    bare = memory(1, 10, 20, kind=HIP, number=0)
    del bare["args"]["Device Type"]
    assert held(read(tmp_path, [*ran, bare])) == []


def test_blocks_of_any_size_say_the_same_and_devices_alone_need_none(tmp_path: Path) -> None:
    events = [
        *(memory(at, at * 8, at * 16, kind=CUDA, number=0) for at in range(1, 200)),
        kernel("gemm", 7, 2, correlation=5),
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        *(memory(at, at) for at in range(200, 300)),
    ]
    path = write(tmp_path / "t.json", document(events))
    whole = held(read_blocks(path))
    assert len(whole) == 2 * 199 + 100
    assert held(read_blocks(path, block_bytes=600)) == whole
    for wanted in (Wanted.DEVICES, Wanted.TIMES):
        narrow = read_blocks(path, wanted=wanted)
        assert (len(narrow.samples), len(narrow.kernels)) == (0, 1)
        assert not any("cpu_instant" in problem.message for problem in narrow.problems)
