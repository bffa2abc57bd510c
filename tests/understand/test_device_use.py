"""A run with a pass of torch and a counter pass: operators against the ceilings, and the counters
of their kernels.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.node.ceilings import Calibration, store
from profharness.rundir.manifest import Artifact, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from profharness.understand.device_use import use_of
from profharness.understand.hotspots import hotspots_of
from profharness.understand.load import load
from profharness.understand.many.tables import hotspots_of_files
from profharness.understand.report_run import finish
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import Program, program


def operators_of(given: Program) -> list[str]:
    """Two kernels by one operator, two by the other, and so on."""
    return [("aten::mm", "aten::add")[at // 2 % 2] for at in range(len(given.kernels))]


def torch_trace(given: Program) -> str:
    """The same kernels under torch.profiler, a minute later, each inside of an operator."""
    names = {symbol.number: symbol.name for symbol in given.symbols}
    inputs = {
        "Input Dims": [[256, 256], [256, 256]],
        "Input type": ["float", "float"],
    }
    events = []
    for at, (kernel, operator) in enumerate(
        zip(given.kernels, operators_of(given), strict=True), 1
    ):
        start = kernel.start / 1000 + 6e7
        host = {"pid": 7, "tid": 8, "ph": "X"}
        correlation = {"correlation": at}
        events += [
            {**host, "cat": "cpu_op", "name": operator, "ts": at * 10.0, "dur": 9, "args": inputs},
            {
                **host,
                "cat": "cuda_runtime",
                "name": "hipLaunchKernel",
                "ts": at * 10.0 + 1,
                "dur": 2,
                "args": correlation,
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": names[kernel.symbol],
                "pid": 0,
                "tid": kernel.stream,
                "ts": start,
                "dur": (kernel.end - kernel.start) / 1000 + 1,
                "args": {"device": 0, "stream": kernel.stream, **correlation},
            },
        ]
    devices = [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}]
    head = {"schemaVersion": 1, "hip_runtime_version": 60400000, "deviceProperties": devices}
    return json.dumps({**head, "traceEvents": events})


def run_of(root: Path, given: Program) -> RunDir:
    run = RunDir.create(root)
    torch = run.artifacts_dir("torch", "node1", "5000") / "trace.json"
    torch.write_text(torch_trace(given))
    counted = run.artifacts_dir("counters", "node1", "4711") / "4711_results.db"
    write_rocpd(counted, given)
    found = (
        (torch, "torch", "kineto", "torch"),
        (counted, "counters", "rocpd", "rocprofv3"),
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
                PassRecord(name="counters", layers=("rocprofv3",), perturbing=True),
            ),
            artifacts=tuple(
                Artifact(
                    path=run.relative(path),
                    layer=layer,
                    format=form,
                    pass_name=name,
                    host="node1",
                    pid=1,
                )
                for path, name, form, layer in found
            ),
        )
    )
    return run


def test_counters_of_a_pass_of_their_own_are_listed_by_operator(tmp_path: Path) -> None:
    given = program(3, 20, pid=1, host="node1", counters=True)
    run_of(tmp_path, given)
    use = use_of(load([tmp_path]))
    assert use is not None
    assert use.pass_name == "torch"
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for kernel, operator in zip(given.kernels, operators_of(given), strict=True):
        for name, values in kernel.counters:
            expected[operator, name] += sum(values)
    assert {(row.operator, row.counter): row.sum for row in use.counters} == dict(expected)
    # grids differ from launch to launch, so that name and workgroups say which dispatch it is
    assert all(row.in_order == row.dispatches for row in use.counters)


def test_a_calibrated_machine_gives_tables_and_pages_the_same_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFHARNESS_CACHE", str(tmp_path / "cache"))
    run = run_of(tmp_path / "run", program(3, 20, pid=1, host="node1", counters=True))
    file = run.root / "artifacts" / "torch" / "node1" / "5000" / "trace.json"
    before = shares(run.root), shares(file)
    store(
        Calibration(
            created="2026",
            kind="rocm",
            name="AMD Instinct MI300X",
            compute_units=304,
            gemm_flops={"fp32": 4e13},
            copy_bytes_per_s=3e12,
        )
    )
    for path, uncalibrated in zip((run.root, file), before, strict=True):
        (table, others), use = shares(path), use_of(load([path]))
        assert use is not None
        assert table == {row.name: row.peak_share for row in use.operators}
        assert all(share is not None for share in table.values())
        assert others == table  # of files, which are read and grouped one by one
        assert table != uncalibrated[0]


def shares(path: Path) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """The share of peak of each operator in the table of what was loaded, and in that of files."""
    loaded = {row.name: row.peak_share for row in hotspots_of(load([path]), "op").rows}
    if path.is_dir():
        return loaded, loaded
    table = hotspots_of_files([path], "op").table
    return loaded, {row.name: row.peak_share for row in table.rows}


@pytest.mark.slow
def test_the_report_of_a_run_has_the_section(tmp_path: Path) -> None:
    run = run_of(tmp_path, program(3, 20, pid=1, host="node1", counters=True))
    summary = finish(tmp_path)
    assert summary.use is not None
    page = run.report.read_text(encoding="utf-8")
    assert "How well the device was used" in page
    assert "Hardware counters by operator" in page
    assert json.loads(run.summary.read_bytes())["use"]["pass"] == "torch"


@pytest.mark.slow
def test_plot_draws_the_roofline_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mplhep")
    file = tmp_path / "trace.json"
    file.write_text(torch_trace(program(3, 20, pid=1, host="node1", counters=False)))
    picture = tmp_path / "roofline.png"
    assert run_cli(["plot", str(file), "--roofline", "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run_cli(["plot", str(file), "--roofline", "--resources", "-o", "x.png"]) != 0
    assert "--roofline is a figure of its own" in capsys.readouterr().err


def test_plot_says_what_to_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.json"
    bare = json.loads(torch_trace(program(3, 20, pid=1, host="node1", counters=False)))
    bare["traceEvents"] = [one for one in bare["traceEvents"] if one["cat"] == "kernel"]
    file.write_text(json.dumps(bare))
    assert run_cli(["plot", str(file), "--roofline", "-o", str(tmp_path / "roofline.png")]) != 0
    assert "--profile torch" in capsys.readouterr().err
