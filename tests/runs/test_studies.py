"""The published studies as scan files: each runs by name at reduced size on the CPU, and leaves the
columns that were published.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.rundir.paths import RunDir
from profharness.scans import studies
from tests import started
from tests.tensorflow_python import INTERPRETER, needs_tensorflow
from tests.variants import thorough

PUBLISHED = [
    "model",
    "backend",
    "via",
    "device",
    "batch_size",
    "throughput",
    "throughput_sem",
    "latency_ms",
    "latency_sem_ms",
]
ADDED = ["throughput_low", "throughput_high", "unit"]
"""What our table has behind them."""
RESOURCES = "Timestamp, GPU Util (%), GPU Mem (%), CPU Util (%), RAM Util (%)"
NONE = Rest((), given=False)
BINARY = Path(__file__).resolve().parents[2] / ".tools" / "perf-analyzer" / "perf_analyzer"
DIRECT = ("--trials", "3", "--batch-sizes", "4,8", "--device", "cpu")
SERVED = (
    "--time",
    "0.6",
    "--warmup-time",
    "0.2",
    "--batch-sizes",
    "4,8",
    "--max-batch-size",
    "8",
    "--device",
    "cpu",
)
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("pytriton") is None, reason="needs nvidia-pytriton (the triton extra)"
)


@pytest.mark.parametrize(
    "name", [name for name in studies.names() if not name.startswith("deepmet")]
)
def test_every_study_is_a_sound_request(name: str) -> None:
    request = build_request(name, {}, NONE)
    assert request.name == name
    assert request.served == ("client" in name or "perf-analyzer" in name)


def test_they_have_the_published_sizes() -> None:
    powers = tuple(4 * 2**k for k in range(10))
    assert build_request("particlenet-onnx", {}, NONE).batch_sizes == powers
    assert build_request("particlenet-torchscript-client", {}, NONE).batch_sizes == powers
    assert build_request("particlenet-onnx-client", {}, NONE).batch_sizes == tuple(range(120, 133))
    assert build_request("particlenet-perf-analyzer", {}, NONE).concurrency == (8,)
    assert build_request("particlenet-torchscript", {}, NONE).torchscript


def test_a_study_of_the_experiments_model_asks_for_it(tmp_path: Path) -> None:
    from profharness import scans
    from profharness.node.probe import Environment

    with pytest.raises(UsageError, match="tensorflow cannot run the built-in"):
        scans.create(build_request("deepmet", {}, NONE), Environment())
    graph = tmp_path / "model.graphdef"
    graph.write_bytes(b"")
    scan = scans.create(build_request("deepmet", {"model": str(graph)}, NONE), Environment())
    assert scan.backends == ("tensorflow",)


def run(name: str, folder: Path, *words: str, **env: str) -> list[dict[str, str]]:
    """The study's results table, after a run in which every point succeeded."""
    done = start(name, folder, *words, **env)
    assert done.returncode == 0, done.stderr
    return table(folder)


def start(name: str, folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return started.run(
        "run",
        name,
        *words,
        "--threads",
        "1",
        "-o",
        "run",
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        timeout=280,
    )


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "run" / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend"),
    [("particlenet-onnx", "onnxruntime"), *thorough(("particlenet-torchscript", "torch"))],
)
def test_direct_studies(tmp_path: Path, name: str, backend: str) -> None:
    pytest.importorskip(backend)
    rows = run(name, tmp_path, *DIRECT)
    assert list(rows[0]) == PUBLISHED + ADDED
    assert [(row["batch_size"], row["backend"], row["via"]) for row in rows] == [
        ("4", backend, "direct"),
        ("8", backend, "direct"),
    ]
    assert all(float(row["throughput"]) > 0 and float(row["latency_ms"]) > 0 for row in rows)
    telemetry = tmp_path / "run" / "telemetry"
    log = (telemetry / "ResourceLog.csv").read_text().splitlines()
    assert log[0] == RESOURCES
    marks = [
        re.fullmatch(
            r"Starting batch size (\d+) at time: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})", line
        )
        for line in (telemetry / "ResourceLog.marks.txt").read_text().splitlines()
    ]
    points = sorted(
        RunDir(tmp_path / "run").read_manifest().points,
        key=lambda point: point.start_monotonic_ns or 0,
    )
    assert [mark and mark[1] for mark in marks] == [str(point.batch_size) for point in points]
    assert {mark[1] for mark in marks if mark} == {"4", "8"}
    begins = [mark[2] for mark in marks if mark]
    assert begins == sorted(begins)
    assert begins[-1] <= log[-1].partition(",")[0] + "99999"
    drawn = started.run("plot", "run", "-o", "resources.svg", "--resources", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert "stroke-dasharray" in (tmp_path / "resources.svg").read_text()
    drawn = started.run("plot", "run", "-o", "curves.svg", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    words = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "curves.svg").read_text())
    assert {"Throughput (jets/s)", "Batch size", "bars: standard error of the mean"} <= set(words)
    assert backend in " ".join(words)


@pytest.mark.thorough  # test_served_runs.py has served scans
@needs_triton
@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize(
    ("name", "backend"),
    [("particlenet-torchscript-client", "torch"), ("particlenet-onnx-client", "onnxruntime")],
)
def test_client_studies(tmp_path: Path, name: str, backend: str) -> None:
    rows = run(name, tmp_path, *SERVED)
    assert [column for column in rows[0] if column != "concurrency"] == PUBLISHED + ADDED
    assert [
        (row["batch_size"], row["backend"], row["via"], row["concurrency"]) for row in rows
    ] == [("4", backend, "triton", "1"), ("8", backend, "triton", "1")]
    assert all(float(row["throughput"]) > 0 for row in rows)


@pytest.mark.slow
@needs_tensorflow
@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize(
    ("name", "words", "via"),
    [
        ("deepmet", DIRECT, "direct"),
        *thorough(("deepmet-client", SERVED, "triton")),
    ],
)
def test_the_studies_of_the_experiments_graph(
    shared: Path, tmp_path: Path, name: str, words: tuple[str, ...], via: str
) -> None:
    model = shared / "fixtures" / "models" / "deepmet" / "1" / "model.graphdef"
    rows = run(name, tmp_path, *words, "--model", str(model), "--python", INTERPRETER)
    assert [column for column in rows[0] if column != "concurrency"] == PUBLISHED + ADDED
    assert ("concurrency" in rows[0]) == (via == "triton")
    assert [(row["model"], row["batch_size"], row["backend"], row["via"]) for row in rows] == [
        ("deepmet", size, "tensorflow", via) for size in ("4", "8")
    ]
    assert all(float(row["throughput"]) > 0 and float(row["latency_ms"]) > 0 for row in rows)
    log = (tmp_path / "run" / "telemetry" / "ResourceLog.csv").read_text().splitlines()
    assert log[0] == RESOURCES


@pytest.mark.thorough  # load/test_perf_analyzer.py has the real one on a real server
@needs_triton
@pytest.mark.xdist_group("triton")
@pytest.mark.skipif(not BINARY.exists(), reason="needs perf_analyzer (make perf-analyzer)")
def test_the_perf_analyzer_study(tmp_path: Path) -> None:
    """perf_analyzer gives up a level that it finds unstable, as a busy machine makes it; then the
    point says so.
    """
    done = start(
        "particlenet-perf-analyzer",
        tmp_path,
        *SERVED,
        "--batch-sizes",
        "4",
        "--time",
        "2.5",
        "--concurrency",
        "2",
        PROFHARNESS_PERF_ANALYZER=str(BINARY),
    )
    points = RunDir(tmp_path / "run").read_manifest().points
    failed = [point for point in points if point.state == "failed"]
    assert all("stable measurement" in point.error for point in failed), done.stderr
    assert done.returncode == (1 if failed else 0)
    measured = {
        str(point.batch_size) for point in points if point.state == "ok" and not point.repeat
    }
    rows = table(tmp_path) if measured else []  # a run without a measured level has no table
    assert {row["batch_size"] for row in rows} == measured
    assert all((row["via"], row["concurrency"]) == ("perf-analyzer", "2") for row in rows)


@pytest.mark.thorough  # test_pinned_runs.py has pinned processes
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs to part")
def test_the_multi_process_study(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    rows = run(
        "multi-process", tmp_path, "--time", "0.4", "--warmup-time", "0.1", "--batch-sizes", "4"
    )
    assert [(row["batch_size"], row["processes"]) for row in rows] == [("4", "1"), ("4", "2")]
