"""A small Kineto file with every way in which a kernel can, or cannot, belong to an operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from profharness.rundir.manifest import Artifact, Manifest, NodeRecord, PassRecord
from profharness.rundir.paths import RunDir

MM = [[3, 5], [5, 7]]
FLOPS = 2 * 3 * 5 * 7
FORMULA = """
[[formula]]
match = "my::fused"
kind = "matmul"
a = 0
b = 1
"""
TOO_FAR = """
[[formula]]
match = "my::fused"
kind = "matmul"
a = 0
b = 6
"""


def operator(name: str, start_us: float, shapes: list[list[int]] | None) -> dict[str, object]:
    """An operator of 10 us with fp32 inputs of these extents; None: not recorded."""
    args: dict[str, object] = {}
    if shapes is not None:
        args = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
    return _event("cpu_op", name, start_us, 10.0, 7, args)


def launch(start_us: float, correlation: int, name: str = "hipLaunchKernel") -> dict[str, object]:
    """A call of 1 us."""
    return _event("cuda_runtime", name, start_us, 1.0, 7, {"correlation": correlation})


def kernel(
    start_us: float, dur_us: float, correlation: int, name: str = "Cijk_gemm"
) -> dict[str, object]:
    """A kernel on device 0."""
    args = {"correlation": correlation, "device": 0, "stream": 0}
    return _event("kernel", name, start_us, dur_us, 0, args)


def _event(
    category: str, name: str, start_us: float, dur_us: float, process: int, args: dict[str, object]
) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": process,
        "ts": start_us,
        "dur": dur_us,
        "args": args,
    }


EVENTS = (
    operator("aten::mm", 0.0, MM),
    launch(2.0, 1),
    kernel(100.0, 20.0, 1),
    operator("my::fused", 20.0, MM),
    launch(22.0, 2),
    kernel(120.0, 10.0, 2),
    launch(40.0, 3, "hipGraphLaunch"),
    kernel(130.0, 30.0, 3),
    kernel(160.0, 5.0, 99),
    launch(50.0, 4),
    kernel(170.0, 7.0, 4),
    operator("aten::mm", 60.0, None),
    launch(62.0, 5),
    kernel(180.0, 2.0, 5),
    operator("aten::relu", 80.0, [[8, 8]]),
    launch(82.0, 6),
    kernel(190.0, 11.0, 6, "elementwise_kernel"),
)
"""In all 74 us of products and 11 us of something else."""


FUSED = (*EVENTS[3:6],)
"""The operator without a formula of ours, its launch and its kernel."""


def write(path: Path, events: tuple[dict[str, object], ...] = EVENTS) -> Path:
    """The file, as Kineto writes one."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events)}))
    return path


def run_of(root: Path, write_trace: Callable[[Path], object]) -> Path:
    """A run of a command with one pass of torch, whose only file `write_trace` writes."""
    run = RunDir.create(root)
    recorded = run.artifacts_dir("torch", "n0", "0") / "t.pt.trace.json"
    write_trace(recorded)
    artifact = Artifact(
        path=run.relative(recorded), layer="torch", format="kineto", pass_name="torch", host="n0"
    )
    run.write_manifest(
        Manifest(
            id="r",
            created="2026-01-02T03:04:05Z",
            profharness="0",
            kind="command",
            argv=("profharness", "run"),
            artifacts=(artifact,),
            nodes=(NodeRecord(host="n0"),),
            passes=(PassRecord(name="torch", layers=("torch",)),),
        )
    )
    return run.root
