"""Scans over the settings of models: on real servers (PyTriton with a model of known service time,
our load generator, and the answer served again), and in workers of ours.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.readers.perfetto.check import check_file
from profharness.rundir.paths import RunDir
from tests import started

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
SERVICE_S = 0.100
MODEL = ("--model", "sleep:100ms", "--max-batch-size", "1", "--telemetry", "cpu", "--quiet")
SHORT = ("--time", "0.8", "--warmup-time", "0.2")


def run(*words: str, cwd: Path) -> str:
    done = started.run("run", *words, cwd=cwd, env=ENV, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def saturation(root: Path) -> dict:
    done = started.run("saturation", root, "--json", env=ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def expected(instances: float, clients: float) -> float:
    """Requests per second of a server whose every instance takes its time for each request."""
    return min(instances, clients) / SERVICE_S


def is_that(rate: float, instances: float, clients: float) -> bool:
    """Whether a rate is that of so many instances and clients. It cannot be higher, but for the
    requests at the ends of the window; on a machine that other tests hold it is less, though more
    than of a third of the instances.
    """
    most = expected(instances, clients)
    return 0.4 * most < rate < 1.1 * most


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pytriton", reason="needs the extra triton")
    folder = tmp_path_factory.mktemp("grid")
    run(
        *(*MODEL, "--via", "triton", *SHORT),
        *("--scan", "instances=1,3", "--scan", "concurrency=1,6", "--repeats", "2"),
        *("-o", "run"),
        cwd=folder,
    )
    return folder / "run"


def test_each_setting_has_the_rate_of_its_instances(grid: Path) -> None:
    document = saturation(grid)
    along = next(one for one in document["series"] if one["axis"] == "concurrency")
    assert along["key"] == {"instances": 3}
    assert along["levels"] == [1, 6]
    for level, rate in zip(along["levels"], along["throughput"], strict=True):
        assert is_that(rate, 3, level), (level, rate)
    manifest = RunDir.open(grid).read_manifest()
    assert len(manifest.points) == 8
    for record in manifest.points:
        assert set(record.parameters) == {"instances", "concurrency"}
        instances, clients = (float(record.parameters[name]) for name in record.parameters)
        assert record.execution is not None
        assert is_that(record.execution.rate, instances, clients), record
    assert check_file(grid / "merged.pftrace").faults == ()


def test_what_each_visited_server_said_is_kept(grid: Path) -> None:
    folders = sorted((grid / "control" / "bare").iterdir())
    assert [folder.name for folder in folders] == ["sleep@instances1", "sleep@instances3"]
    logs = [len(list(folder.glob("server-*.log"))) for folder in folders]
    assert sorted(logs) in ([1, 2], [2, 2])  # the second round may begin where the first ended


def test_the_answer_names_the_best_and_serves_it(grid: Path) -> None:
    done = started.run("report", grid, env=ENV)
    said = " ".join(done.stdout.split())
    assert "Best is" in said
    assert "items/s at instances 3, concurrency 6" in said
    assert "Serve it so: `profharness serve sleep:100ms --instances 3 --max-batch-size 1`" in said
    axes = saturation(grid)
    assert axes["best"] == "sleep@instances3-b1-c6"
    assert axes["front"]["figures"][:2] == ["throughput", axes["front"]["figures"][1]]
    assert axes["best"] in [one["point"] for one in axes["front"]["points"]]


def served_again(line: str, more: tuple[str, ...], folder: Path) -> float:
    """Requests per second of 6 clients on the server that the line starts."""
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        grpc, http = free.getsockname()[1], other.getsockname()[1]
    words = shlex.split(line)
    assert words[:2] == ["profharness", "serve"]
    served = shlex.join(
        [sys.executable, "-m", *words, *more, "--grpc-port", str(grpc), "--http-port", str(http)]
    )
    run(
        *("--server-command", served, "--ready", f"http://127.0.0.1:{http}/v2/health/ready"),
        *("--model", "sleep", "--concurrency", "6", *SHORT, "--telemetry", "cpu", "--quiet"),
        *("-o", "again"),
        cwd=folder,
    )
    manifest = RunDir.open(folder / "again").read_manifest()
    return max(one.result.throughput for one in manifest.points if one.result is not None)


@pytest.mark.parametrize("kept", [False, True])
def test_the_line_serves_again_at_the_same_rate(grid: Path, tmp_path: Path, kept: bool) -> None:
    """By PyTriton, and by Triton's Python backend from the repository that it writes."""
    more = ("--repository", str(tmp_path / "models")) if kept else ()
    assert is_that(served_again(saturation(grid)["serve"], more, tmp_path), 3, 6)
    if kept:
        ours = (grid / "served" / "python" / "sleep" / "config.pbtxt").read_text()
        theirs = (tmp_path / "models" / "sleep" / "config.pbtxt").read_text()
        assert settings_in(ours) == settings_in(theirs)


@pytest.mark.thorough
def test_the_benchmark_serves_it_in_three_ways(grid: Path) -> None:
    program = Path(__file__).parents[2] / "benchmarks" / "serve_again.py"
    done = subprocess.run(
        [sys.executable, program, grid, "--rounds", "2", "--time", "1"],
        capture_output=True,
        text=True,
        env=ENV,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    rates = re.findall(r"^ *(scan|line|repository): ([\d.]+)", done.stdout, re.MULTILINE)
    assert [way for way, _ in rates] == ["scan", "line", "repository"], done.stderr
    assert all(is_that(float(rate), 3, 6) for _, rate in rates)


def settings_in(text: str) -> dict:
    """What a configuration sets, as the server's own message reads it; not what the backend needs
    to find the model.
    """
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    message = text_format.Parse(text, model_config_pb2.ModelConfig())
    found = json_format.MessageToDict(message)
    found.pop("parameters", None)
    return found


def test_a_search_finds_the_setting_within_the_limit(tmp_path: Path) -> None:
    pytest.importorskip("pytriton", reason="needs the extra triton")
    # of 3 instances, 3 clients wait 100 ms, and 6 of them 200: the limit decides
    run(
        *(*MODEL, "--via", "triton", *SHORT, "--latency-limit", "p50=190ms"),
        *("--scan", "instances=1,2,3", "--scan", "concurrency=1,3,6", "--search", "7"),
        *("-o", "run"),
        cwd=tmp_path,
    )
    said = started.run("report", tmp_path / "run", env=ENV).stdout
    assert "among points with latency p50 <= 190 ms" in " ".join(said.split())
    assert "p50_ms" not in said, "the table has it once, by the name of a latency"
    axes = saturation(tmp_path / "run")
    assert axes["design"] == "search"
    # 6 clients are too many for any server, and 3 need more than one instance
    assert axes["best"] in ("sleep@instances2-b1-c3", "sleep@instances3-b1-c3")
    assert axes["requires"] == ["p50_ms <= 190"]
    manifest = RunDir.open(tmp_path / "run").read_manifest()
    levels = [record.id for record in manifest.points if record.pass_name == "bare"]
    assert len(levels) == 7
    assert levels.count(axes["best"]) >= 2


def test_a_dry_run_tells_the_cost_and_starts_nothing(tmp_path: Path) -> None:
    said = run(
        *("particlenet", "--via", "triton", "--scan", "instances=1,2,4"),
        *("--scan", "queue-delay-us=0,1000", "--search", "6", "--dry-run", "-o", "run"),
        cwd=tmp_path,
    )
    assert "6 of 6 points (instances 3 x queue-delay-us 2), found by a search" in said
    assert "6 levels, each 5 s after at least 1 s of warm-up" in said
    assert not (tmp_path / "run").exists()


def test_shapes_and_batches_of_a_model_without_a_server(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="makes the model")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    tensors = [helper.make_tensor_value_info(name, number, ["n", "m"]) for name in ("tokens", "y")]
    nodes = [
        helper.make_node("Sin", [f"x{at}" if at else "tokens"], [f"x{at + 1}" if at < 19 else "y"])
        for at in range(20)
    ]
    graph = helper.make_graph(nodes, "waves", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "waves.onnx"))
    run(
        *("--model", "waves.onnx", "--scan", "shape:tokens=64,65536", "--scan", "batch=1,4"),
        *("--repeats", "2", "--trials", "5", "--min-seconds", "0.1", "--threads", "1"),
        *("--profile", "onnxruntime", "--profile-trials", "3", "--telemetry", "cpu", "--quiet"),
        *("-o", "run"),
        cwd=tmp_path,
    )
    document = saturation(tmp_path / "run")
    assert document["serve"] == ""
    along = next(one for one in document["series"] if one["axis"] == "shape:tokens")
    assert along["levels"] == [64, 65536]
    assert along["throughput"][0] > 20 * along["throughput"][1]  # a thousand times the work
    shape = next(one for one in document["effects"] if one["axes"] == ["shape:tokens"])
    assert shape["proven"]
    traced = [
        record.id
        for record in RunDir.open(tmp_path / "run").read_manifest().points
        if record.pass_name == "onnxruntime"
    ]
    assert document["best"] in traced
    assert not (tmp_path / "run" / "served").exists()


def test_a_setting_that_is_refused_costs_itself(tmp_path: Path) -> None:
    words = ("particlenet", "--backend", "onnxruntime", "--scan", "provider=cpu,migraphx")
    short = ("--repeats", "1", "--trials", "3", "--min-seconds", "0", "--quiet", "-o", "run")
    done = started.run("run", *words, *short, cwd=tmp_path, env=ENV, timeout=400)
    assert done.returncode == 1
    records = {one.id: one for one in RunDir.open(tmp_path / "run").read_manifest().points}
    assert records["onnxruntime@providercpu-b1"].state == "ok"
    refused = records["onnxruntime@providermigraphx-b1"]
    assert (refused.state, "MIGraphXExecutionProvider" in refused.error) == ("failed", True)


def test_where_every_setting_is_refused_the_run_says_why(tmp_path: Path) -> None:
    words = ("particlenet", "--backend", "onnxruntime", "--scan", "provider=rocm,migraphx")
    short = ("--repeats", "1", "--quiet", "-o", "run")
    done = started.run("run", *words, *short, cwd=tmp_path, env=ENV, timeout=400)
    assert done.returncode == 3
    assert "this onnxruntime has no" in done.stderr
