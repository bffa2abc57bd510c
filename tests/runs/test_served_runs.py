"""Whole served scans on real servers: PyTriton with our workers inside, our load generator, real
layers on the server's process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.readers.perfetto.check import check_file
from profharness.understand import report_run as understand
from profharness.understand.load import Loaded
from tests import started
from tests.queueing import sojourn_times

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
SERVICE_S, INSTANCES = 0.020, 3
SLEEPING = (
    "--model",
    "sleep:20ms",
    "--instances",
    str(INSTANCES),
    "--max-batch-size",
    "1",
    "--telemetry",
    "cpu",
    "--quiet",
)


def profharness(*words: str, cwd: Path, cache: Path | None = None) -> None:
    folder = cache or cwd.parent / "cache"
    done = started.run(*words, cwd=cwd, env={**ENV, "PROFHARNESS_CACHE": str(folder)}, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr


def read(root: Path) -> tuple[Loaded, Summary]:
    loaded = understand.load([root])
    return loaded, understand.summarise(loaded)


def value(figure: Figure) -> float:
    assert figure.value is not None, figure
    return float(figure.value)


@pytest.fixture(scope="module")
def particlenet(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Path:
    pytest.importorskip("pytriton", reason="needs the extra triton")
    folder = tmp_path_factory.mktemp("particlenet")
    profharness(
        "run",
        "particlenet",
        "--via",
        "triton",
        "--backend",
        "torch,onnxruntime",
        "--concurrency",
        "1,8",
        "--time",
        "0.6",
        "--warmup-time",
        "0.2",
        "--threads",
        "1",
        "--profile",
        "torch,onnxruntime",
        "--profile-trials",
        "5",
        "--telemetry",
        "cpu",
        "--quiet",
        "-o",
        "run",
        cwd=folder,
        cache=model_cache,
    )
    return folder / "run"


def server_pid(root: Path, pass_name: str, target: str) -> int:
    return int(
        json.loads((root / "control" / pass_name / target / "server-ready.json").read_text())["pid"]
    )


def test_one_trace_holds_requests_server_side_operators_and_telemetry(particlenet: Path) -> None:
    loaded, _ = read(particlenet)
    trace = loaded.trace
    assert {source.clock.value for source in trace.sources} == {"run"}
    for layer in ("torch", "onnxruntime"):
        mine = [
            position
            for position, source in enumerate(trace.sources)
            if source.layer == layer and source.pass_name == layer
        ]
        ops = trace.ops.take(np.isin(trace.ops.source, mine))
        assert len(ops)
        assert set(ops.pid.tolist()) == {server_pid(particlenet, layer, layer)}, (
            "the layer is on the server's process"
        )
        points = set(trace.strings.decode(ops.point)) - {""}
        assert points == {f"{layer}-b1-c{level}" for level in (1, 8)}
    requests = trace.requests.take(trace.requests.ok == 1)
    assert {trace.sources[position].pass_name for position in requests.source} == {
        "bare",
        "torch",
        "onnxruntime",
    }
    assert (requests.execution >= 0).mean() > 0.9, "each request knows the execution that served it"
    executions = trace.marks.take(trace.marks.kind == trace.strings.find("execution"))
    assert len(executions)
    assert len(trace.samples)
    assert check_file(particlenet / "merged.pftrace").faults == ()


def test_operators_of_a_level_run_inside_its_executions(particlenet: Path) -> None:
    """On one clock: what the layer recorded lies within the executions that the inference function
    timed itself.
    """
    loaded, _ = read(particlenet)
    trace = loaded.trace
    marks = trace.marks.take(trace.marks.kind == trace.strings.find("execution"))
    marks = marks.take([trace.sources[position].pass_name == "torch" for position in marks.source])
    order = np.argsort(marks.start_ns)
    starts, ends = marks.start_ns[order], (marks.start_ns + marks.dur_ns)[order]
    mine = [position for position, source in enumerate(trace.sources) if source.layer == "torch"]
    ops = trace.ops.take(np.isin(trace.ops.source, mine) & (trace.ops.depth == 0))
    names = trace.strings.decode(ops.name)
    convolutions = ops.take([name.startswith("aten::conv") for name in names])
    assert len(convolutions)
    at = np.searchsorted(starts, convolutions.start_ns + 20_000, "right") - 1
    inside = (at >= 0) & (
        convolutions.start_ns + convolutions.dur_ns <= ends[np.maximum(at, 0)] + 20_000
    )
    assert inside.mean() > 0.98


def test_every_level_is_sound_and_the_parts_of_a_request_sum_to_its_latency(
    particlenet: Path,
) -> None:
    _, summary = read(particlenet)
    assert [point.concurrency for point in summary.points] == [1, 8] * 2
    for point in summary.points:
        assert point.state == "ok", point
        assert point.throughput
        assert point.failed == 0
        assert value(point.metrics["parts_sum"]) == pytest.approx(1, abs=0.02), point.point
        assert value(point.metrics["part_model"]) > 0
        assert value(point.metrics["server_batch"]) >= 1
        assert value(point.metrics["in_flight"]) == pytest.approx(point.concurrency, rel=0.05)
        assert value(point.metrics["cores_used"]) > 0.1, "telemetry follows the server"
        assert list(point.overhead) == [point.backend]
    wrong = [
        one
        for one in summary.findings
        if one.id in ("littles-law", "errors", "point-failed", "run-incomplete", "empty-trace")
    ]
    assert wrong == []
    assert {one.key["backend"] for one in summary.series} == {"torch", "onnxruntime"}


@pytest.mark.thorough  # wrappers/test_triton_server.py serves it over both protocols
def test_a_real_onnx_model_is_served_over_http(shared: Path, tmp_path: Path) -> None:
    model = next((shared / "fixtures" / "models").rglob("particlenet_AK4/1/model.onnx"), None)
    if model is None:
        pytest.skip("the shared models hold no particlenet_AK4")
    profharness(
        "run",
        "--via",
        "triton",
        "--model",
        str(model),
        "--protocol",
        "http",
        "--concurrency",
        "1,8",
        "--time",
        "0.6",
        "--warmup-time",
        "0.2",
        "--threads",
        "1",
        "--profile",
        "onnxruntime",
        "--telemetry",
        "cpu",
        "--quiet",
        "-o",
        "run",
        cwd=tmp_path,
    )
    loaded, summary = read(tmp_path / "run")
    assert all(point.throughput for point in summary.points)
    assert all(
        value(point.metrics["parts_sum"]) == pytest.approx(1, abs=0.02) for point in summary.points
    )
    assert len(loaded.trace.ops)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.thorough  # cli/test_serve.py has the command, test_foreign_windows.py the layer
def test_profharness_serve_runs_under_a_layer_like_any_server(tmp_path: Path) -> None:
    pytest.importorskip("pytriton", reason="needs the extra triton")
    port = free_port()
    profharness(
        "run",
        "--server-command",
        f"{sys.executable} -m profharness serve particlenet --http-port {port} --threads 1",
        "--ready",
        f"http://127.0.0.1:{port}/v2/health/ready",
        "--model",
        "particlenet",
        "--concurrency",
        "1,2",
        "--time",
        "0.5",
        "--warmup-time",
        "0.2",
        "--profile",
        "torch",
        "--telemetry",
        "cpu",
        "--quiet",
        "-o",
        "run",
        cwd=tmp_path,
    )
    loaded, summary = read(tmp_path / "run")
    assert [point.state for point in summary.points] == ["ok", "ok"]
    trace = loaded.trace
    convolutions = trace.ops.take(
        [name == "aten::convolution" for name in trace.strings.decode(trace.ops.name)]
    )
    assert {"server-b1-c1", "server-b1-c2"} <= set(trace.strings.decode(convolutions.point)), (
        "operators of the server's own threads"
    )


@pytest.mark.thorough  # test_served_stand_ins.py has two models on one stand-in
def test_two_models_on_one_server_keep_their_own_times(tmp_path: Path) -> None:
    """They sleep, so that sharing costs nothing but the machine's own noise: what is sure is that
    they run at the same time.
    """
    pytest.importorskip("pytriton", reason="needs the extra triton")
    targets = ("sleep@sleep_10ms", "sleep@sleep_11ms")
    profharness(
        "run",
        "--via",
        "triton",
        "--model",
        "sleep:10ms,sleep:11ms",
        "--together",
        "--concurrency",
        "1,2",
        "--time",
        "1",
        "--warmup-time",
        "0.3",
        "--telemetry",
        "cpu",
        "--quiet",
        "-o",
        "run",
        cwd=tmp_path,
    )
    loaded, summary = read(tmp_path / "run")
    assert [level.concurrency for level in summary.sharing] == [1, 2]
    assert {series.key["backend"] for series in summary.series} == set(targets), (
        "the sum of several models is no curve of one"
    )
    for level in summary.sharing:
        assert tuple(one.target for one in level.models) == targets
        assert sum(one.together.value or 0 for one in level.models) == pytest.approx(
            level.total.value
        )
        assert all(
            one.slowdown.value == pytest.approx((one.alone.value or 0) / (one.together.value or 1))
            for one in level.models
        )
    trace = loaded.trace
    requests = trace.requests.take(trace.requests.ok == 1)
    key = trace.strings.find("together-b1-c1")
    both = requests.take((requests.point == key) & (requests.server_start_ns > 0))
    first, second = (both.take(both.client == client) for client in (0, 1))
    assert (
        10_000_000 <= first.server_compute_ns.min() < 11_000_000 <= second.server_compute_ns.min()
    )
    ends = first.server_start_ns + first.server_compute_ns
    overlapping = [
        ((first.server_start_ns < start + length) & (ends > start)).any()
        for start, length in zip(second.server_start_ns, second.server_compute_ns, strict=True)
    ]
    assert np.mean(overlapping) > 0.5, "one model runs while the other does"


def waiting(summary: Summary) -> str:
    """How far other work kept the server and its clients from the cores; empty on a quiet
    machine.
    """
    return next((one.message for one in summary.findings if one.id == "cpu-pressure"), "")


@pytest.mark.thorough  # test_known_service_time.py and load/test_on_triton.py have its likes
def test_what_a_server_of_known_service_time_can_do_at_most(tmp_path: Path) -> None:
    """Its instances over the time that each request takes one: the 20 ms and the hand-over to the
    model's process.
    """
    profharness(
        "run",
        "--via",
        "triton",
        *SLEEPING,
        "--concurrency",
        f"{2 * INSTANCES},{4 * INSTANCES}",
        "--time",
        "1.5",
        "-o",
        "run",
        cwd=tmp_path,
    )
    _, summary = read(tmp_path / "run")
    assert len(summary.points) == 2
    for point in summary.points:
        cycle_ms = value(point.metrics["part_model"]) + value(point.metrics["part_hand_over"])
        assert point.throughput == pytest.approx(INSTANCES / cycle_ms * 1e3, rel=0.05), (
            f"{point.point}: {cycle_ms:.2f} ms per request"
        )


@pytest.mark.skipif(
    (os.cpu_count() or 1) < 4,
    reason=(
        "needs four cores: on fewer the hand-over to the model's process adds to the 20 ms; "
        "see test_known_service_time.py"
    ),
)
def test_knee_and_maximum_of_a_server_of_known_service_time(tmp_path: Path) -> None:
    """X_max = n / 20 ms and a knee at n clients, both within 5 %; a machine whose cores are taken
    by others cannot show it.
    """
    profharness(
        "run",
        "saturation",
        *SLEEPING,
        "--concurrency",
        "1..16",
        "--time",
        "1.5",
        "-o",
        "run",
        cwd=tmp_path,
    )
    _, summary = read(tmp_path / "run")
    (series,) = summary.series
    assert series.knee is not None
    assert series.knee.n is not None
    told = (
        f"knee {series.knee.n:.2f} of {INSTANCES}, maximum {max(series.throughput):.1f} of "
        f"{INSTANCES / SERVICE_S:.0f} requests/s"
    )
    if waiting(summary):
        pytest.skip(f"{waiting(summary)}: {told}")
    assert series.knee.n == pytest.approx(INSTANCES, rel=0.05), told
    assert max(series.throughput) == pytest.approx(INSTANCES / SERVICE_S, rel=0.05), told


@pytest.mark.skipif(
    (os.cpu_count() or 1) < 4,
    reason=(
        "needs four cores: where the server's processes and the clients share fewer, "
        "the load is not 70 %"
    ),
)
def test_corrected_latency_at_70_percent_load_follows_queueing_theory(tmp_path: Path) -> None:
    """p99 of done - intended within 10 % of what queueing theory gives for the very arrivals that
    were made.
    """
    rate = 0.7 * INSTANCES / SERVICE_S
    profharness(
        "run",
        "--via",
        "triton",
        *SLEEPING,
        "--rate",
        f"{rate:g}",
        "--time",
        "12",
        "-o",
        "run",
        cwd=tmp_path,
    )
    loaded, summary = read(tmp_path / "run")
    point: PointSummary = summary.points[0]
    trace = loaded.trace
    first = next(
        position
        for position, source in enumerate(trace.sources)
        if source.format == "requests" and source.point == point.point
    )
    requests = trace.requests.take((trace.requests.source == first) & (trace.requests.ok == 1))
    requests = requests.take(np.argsort(requests.intended_ns))
    window = next(
        position
        for position, source in enumerate(trace.sources)
        if source.format == "level" and source.point == point.point
    )
    mark = trace.marks.take(trace.marks.source == window)
    inside = (requests.done_ns > mark.start_ns[0]) & (
        requests.done_ns <= mark.start_ns[0] + mark.dur_ns[0]
    )
    arrivals = (requests.intended_ns - requests.intended_ns[0]) / 1e9
    predicted = (
        float(np.percentile(sojourn_times(arrivals, INSTANCES, SERVICE_S)[inside], 99)) * 1e3
    )
    measured = value(point.metrics["latency_p99"])
    told = f"p99 {measured:.1f} ms, {predicted:.1f} ms by theory, for {int(inside.sum())} requests"
    print(told)
    if waiting(summary):
        pytest.skip(f"{waiting(summary)}: {told}")
    assert measured == pytest.approx(predicted, rel=0.10), told
