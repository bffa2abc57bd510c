"""A run with a torch pass on ROCm and a rocprofv3 pass: the merged trace has the geometry of
both.
"""

from __future__ import annotations

import json
from pathlib import Path

from profharness.rundir.manifest import Artifact, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.understand.load_run import load_run
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import Program, program


def run_of(root: Path, given: Program) -> Trace:
    """What a run directory gives that holds the program under rocprofv3 and, a minute later, under
    torch.profiler.
    """
    run = RunDir.create(root)
    folder = run.artifacts_dir("rocprofv3", "node1", "4711")
    write_rocpd(folder / "4711_results.db", given)
    names = {symbol.number: symbol.name for symbol in given.symbols}
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": names[k.symbol],
            "pid": k.agent,
            "tid": k.stream,
            "ts": k.start / 1000 + 6e7,
            "dur": (k.end - k.start) / 1000 + 1,
            "args": {"device": k.agent - 2, "stream": k.stream, "correlation": k.correlation},
        }
        for k in given.kernels
    ]
    torch = run.artifacts_dir("torch", "node1", "5000") / "trace.json"
    torch.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "hip_runtime_version": 60400000,
                "hip_driver_version": 60400000,
                "traceEvents": events,
            }
        )
    )
    run.write_manifest(
        Manifest(
            id="r",
            created="",
            profharness="0",
            kind="command",
            argv=(),
            passes=(
                PassRecord(name="torch", layers=("torch",)),
                PassRecord(name="rocprofv3", layers=("rocprofv3",)),
            ),
            artifacts=(
                Artifact(
                    path=run.relative(torch), layer="torch", format="kineto", pass_name="torch"
                ),
                Artifact(
                    path=run.relative(folder / "4711_results.db"),
                    layer="rocprofv3",
                    format="rocpd",
                    pass_name="rocprofv3",
                ),
            ),
        )
    )
    return load_run(root).trace


def test_the_torch_pass_takes_geometry_and_keeps_its_times(tmp_path: Path) -> None:
    given = program(3, counters=False)
    trace = run_of(tmp_path / "run", given)
    kernels = trace.kernels
    layers = [trace.sources[position].layer for position in kernels.source.tolist()]
    torch = kernels.take([layer == "torch" for layer in layers])
    rocprofv3 = kernels.take([layer == "rocprofv3" for layer in layers])
    assert (len(torch), len(rocprofv3)) == (40, 40)
    for column in (
        "workgroups",
        "workgroup_count_x",
        "workgroup_size_y",
        "vgpr",
        "accum_vgpr",
        "sgpr",
        "lds_bytes",
        "scratch_bytes",
    ):
        wanted = getattr(rocprofv3, column)
        assert NULL not in wanted
        assert getattr(torch, column).tolist() == wanted.tolist(), column
    assert (torch.dur_ns - rocprofv3.dur_ns).tolist() == [1000] * 40
    told = [problem for problem in trace.problems if "by name and order" in problem.message]
    assert [(one.severity, one.count, one.message) for one in told] == [
        (
            "info",
            40,
            (
                "geometry of 40 of 40 kernels of the torch pass taken from the rocprofv3 pass by "
                "name and order"
            ),
        )
    ]
