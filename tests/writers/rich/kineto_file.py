"""A small Kineto trace that holds all that a merged trace shows of one: names of its process and
threads, modules, Python functions, operators, ranges, calls, kernels and copies.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PID, MAIN, BACKWARD = 700, 700, 731
_HOST = {"pid": PID, "tid": MAIN}


def _span(cat: str, name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **_HOST, **more}


def _named(what: str, name: str, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _device(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    stream = args["stream"]
    return _span(cat, name, ts, dur, pid=0, tid=stream, args={"device": 0, **args})


METADATA = [
    _named("process_name", "python3", PID, 0),
    _named("process_name", "python3", 0, 0),
    _named("thread_name", f"thread {MAIN} (python3)", PID, MAIN),
    _named("thread_name", f"thread {BACKWARD} (python3)", PID, BACKWARD),
    _named("thread_name", f"thread {BACKWARD} (pt_autograd_0)", PID, BACKWARD),
    _named("thread_name", "stream 7 ", 0, 7),
]
FRAMES = [
    _span("python_function", "train.py(10): main", 0.5, 95),
    _span("python_function", "nn.Module: Net_0", 10, 60),
    _span("python_function", "nn.Module: Linear_0", 12, 33),
]
HOST = [
    _span("user_annotation", "ProfilerStep#3", 0, 100),
    _span("user_annotation", "forward", 11, 50),
    _span(
        "cpu_op",
        "aten::linear",
        14,
        20,
        args={"External id": 1, "Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]},
    ),
    _span(
        "cpu_op",
        "aten::mm",
        15,
        15,
        args={"External id": 2, "Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]},
    ),
    _span("cuda_runtime", "cudaLaunchKernel", 16, 5, args={"correlation": 5}),
    _span("cuda_runtime", "cudaMemcpyAsync", 40, 4, args={"correlation": 6}),
    _span("cpu_op", "aten::mul", 80, 5, tid=BACKWARD, args={"External id": 3}),
]
DEVICE = [
    _device(
        "kernel",
        "sgemm_32x32",
        30,
        12,
        stream=7,
        correlation=5,
        grid=[2, 1, 1],
        block=[128, 1, 1],
        **{"External id": 2, "registers per thread": 32, "shared memory": 1024},
    ),
    _device(
        "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 45, 3, stream=20, correlation=6, bytes=64
    ),
]
PROPERTIES = [
    {
        "id": 0,
        "name": "NVIDIA A100-SXM4-40GB",
        "numSms": 108,
        "totalGlobalMem": 42_000_000_000,
        "computeMajor": 8,
        "computeMinor": 0,
    }
]


def write_kineto(path: Path) -> Path:
    """The file, plain."""
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "deviceProperties": PROPERTIES,
                "baseTimeNanoseconds": 1_795_000_000_000_000_000,
                "traceEvents": [*METADATA, *FRAMES, *HOST, *DEVICE],
            }
        )
    )
    return path
