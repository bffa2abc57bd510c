"""perf_analyzer as the load generator: how it is found, what it is told, what is made of what it
writes.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests import started
from tests.load import running

DRIVER = running.ROOT / "wrappers" / "profharness_workloads" / "perf_analyzer" / "client.py"
STAND_IN = '''#!{python}
"""Checks its arguments as perf_analyzer does, prints and writes as it does; MODE chooses how the level goes."""
import json, os, sys, time
args = dict(zip(sys.argv[1::1], sys.argv[2::1]))
if "--version" in sys.argv:
    print("Perf Analyzer Version 2.51.0 (commit unknown)")
    sys.exit(0)
mode = os.environ.get("MODE", "good")
if "ARGV_TO" in os.environ:
    open(os.environ["ARGV_TO"], "w").write(json.dumps(sys.argv))
asked = float(args.get("--concurrency-range") or args.get("--request-rate-range"))
data = json.load(open(args["--input-data"]))["data"]
assert args["-m"] == "double" and data and set(data[0]) == {{"x"}} and "b64" in data[0]["x"], sys.argv
assert "--request-count" not in sys.argv and args["-b"].isdigit()
if mode == "hang":
    time.sleep(600)
if mode == "first unstable":
    print("Failed to obtain stable measurement within 10 measurement windows for concurrency 4. Please try to increase the --measurement-interval.")
    sys.exit(2)
if mode != "left out":
    column = "Concurrency" if "--concurrency-range" in args else "Request Rate"
    with open(args["-f"], "w") as file:
        file.write(column + ",Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,p50 latency\\n")
        file.write("%g,100,2,1000,500,10,8000,100,0,9600\\n" % (asked + (mode == "other level")))
else:
    print("Failed to obtain stable measurement within 10 measurement windows for concurrency 4.")
start = time.time_ns() - 4 * 10**9
requests = [{{"timestamp": start + k * 10**7, "request_inputs": {{"x": [1.5] * 4}}, "response_timestamps": [start + k * 10**7 + 9_600_000], "response_outputs": [{{"timestamp": [2, 3]}}]}} for k in range(400)]
export = {{"experiments": [{{"experiment": {{"mode": "concurrency", "value": asked}}, "requests": requests, "window_boundaries": [start + k * 10**9 for k in range(5)]}}], "version": "2.51.0", "service_kind": "triton", "endpoint": ""}}
with open(args["--profile-export-file"], "w") as file:
    json.dump(export, file, indent=1)
print("  Server: \\n    Inference count: 300\\n    Execution count: 280\\n    Successful request count: 300")
'''


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    path = tmp_path / "perf_analyzer"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    model = {
        "name": "double",
        "version": "1",
        "max_batch_size": 8,
        "inputs": [{"name": "x", "dtype": "FP32", "shape": [-1]}],
        "outputs": [],
    }
    path = tmp_path / "ready.json"
    path.write_text(
        json.dumps({"v": 1, "grpc": "127.0.0.1:1", "http": "127.0.0.1:1", "models": [model]})
    )
    return path


def level(
    tmp_path: Path,
    ready: Path,
    stand_in: Path,
    mode: str = "good",
    spec: dict[str, object] | None = None,
    **params: object,
) -> running.Outcome:
    environ = {"PROFHARNESS_PERF_ANALYZER": str(stand_in), "MODE": mode}
    return running.level(tmp_path, ready, worker=DRIVER, env=environ, spec=spec, **params)


def test_a_level_becomes_requests_on_the_runs_clock(
    tmp_path: Path, ready: Path, stand_in: Path
) -> None:
    import time

    done = level(tmp_path, ready, stand_in, concurrency=1)
    now = time.perf_counter_ns()
    assert done.result.ok, done.result.error + done.log
    assert done.lines[0].versions == {"perf_analyzer": "2.51.0"}
    rows = done.raw().rows
    assert len(rows) == 400
    assert now - 60 * 10**9 < rows[0, 2] < now
    assert set(rows[:, 3] - rows[:, 2]) == {9_600_000}
    assert done.level.window_ns == 3 * 10**9
    assert done.level.requests == 300
    figures = done.figures()
    assert figures.request_rate == pytest.approx(100)
    assert figures.parts is not None
    assert done.level.server_stats is not None
    assert done.level.server_stats["double"].queue_ns == 300 * 500_000
    assert done.level.server_stats["double"].exec_count == 280
    assert done.result.notes["throughput_as_printed"] == "100"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (
            "first unstable",
            (
                "ended with status 2: Failed to obtain stable measurement within 10 measurement "
                "windows"
            ),
        ),
        ("left out", "left the level out: Failed to obtain stable measurement"),
        ("other level", "measured 5 where 4 was asked"),
    ],
)
def test_levels_that_it_did_not_measure_are_failed_with_its_words(
    tmp_path: Path, ready: Path, stand_in: Path, mode: str, words: str
) -> None:
    done = level(tmp_path, ready, stand_in, mode, concurrency=4)
    assert not done.result.ok
    assert words in done.result.error


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"perf_analyzer_args": ["--request-count", "100"]},
            (
                "--request-count is not passed on: its throughput divides the requests by whole "
                "seconds"
            ),
        ),
        ({"perf_analyzer_args": ["--request-count=100"]}, "--request-count is not passed on"),
        ({"perf_analyzer_args": ["-t", "4"]}, "one per call"),
        ({"perf_analyzer_image": "sdk.sif"}, ""),
    ],
)
def test_options_that_are_refused(
    tmp_path: Path, ready: Path, stand_in: Path, spec: dict[str, object], words: str
) -> None:
    if not words:
        done = running.level(tmp_path, ready, worker=DRIVER, env={"PATH": str(tmp_path)}, spec=spec)
        assert done.status == 3
        assert "apptainer" in done.log
        return
    done = level(tmp_path, ready, stand_in, spec=spec)
    assert done.status == 2
    assert words in done.log
    assert [line.kind for line in done.lines] == ["error"]


def test_what_it_cannot_do_fails_the_point(tmp_path: Path, ready: Path, stand_in: Path) -> None:
    assert "think time" in level(tmp_path, ready, stand_in, think_ms=5).result.error


def test_a_poisson_rate_is_asked_for_as_such(tmp_path: Path, ready: Path, stand_in: Path) -> None:
    done = level(tmp_path, ready, stand_in, mode="open", rate=100.0, arrivals="poisson")
    # this stand-in knows the modes of its own environment only: the level's mode is a parameter of
    # the point
    assert done.result.ok, done.result.error + done.log
    assert "--request-rate-range 100 --request-distribution poisson" in done.result.notes["command"]


def test_it_is_missing(tmp_path: Path, ready: Path) -> None:
    done = running.level(
        tmp_path, ready, worker=DRIVER, env={"PROFHARNESS_PERF_ANALYZER": str(tmp_path / "nowhere")}
    )
    assert done.status == 3
    assert "does not start" in done.log
    assert "make perf-analyzer" in done.log


@pytest.fixture
def files(workloads: Path) -> ModuleType:
    from profharness_workloads.perf_analyzer import files as perf_analyzer_files

    return perf_analyzer_files


@pytest.fixture(scope="session")
def workloads() -> Path:
    folder = running.ROOT / "wrappers"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder


@pytest.mark.parametrize("step", [1, 13, 4096])
@pytest.mark.parametrize("indent", [None, 1])
def test_the_export_is_read_in_any_pieces(files: ModuleType, step: int, indent: int | None) -> None:
    requests = [
        {
            "timestamp": 10**18 + k,
            "request_inputs": {"timestamp": [7.5, 8], "x": [1]},
            "response_timestamps": [10**18 + k + 5, 10**18 + k + 9],
            "response_outputs": [{"response_timestamps_of": [1]}],
        }
        for k in range(40)
    ]
    requests.insert(
        3, {"timestamp": 5, "request_inputs": {}, "response_timestamps": [], "response_outputs": []}
    )
    raw = json.dumps(
        {
            "experiments": [
                {
                    "experiment": {"mode": "concurrency", "value": 1},
                    "requests": requests,
                    "window_boundaries": [1, 22, 333],
                }
            ]
        },
        indent=indent,
    ).encode()
    found = files.times(raw[at : at + step] for at in range(0, len(raw), step))
    assert found.requests == [(10**18 + k, 10**18 + k + 9) for k in range(40)]
    assert found.boundaries == [1, 22, 333]


def test_the_recorded_export_is_read_exactly(files: ModuleType, shared: Path) -> None:
    path = shared / "fixtures/models/_perf_analyzer_2.51.0/profile_export_trimmed.json"
    one = json.loads(path.read_text())["experiments"]
    found = files.times(files.pieces(str(path)))
    assert found.requests == [
        (request["timestamp"], request["response_timestamps"][-1])
        for each in one
        for request in each["requests"]
    ]
    assert found.boundaries == [at for each in one for at in each["window_boundaries"]]


def test_real_inputs_item_by_item(files: ModuleType, workloads: Path) -> None:
    import base64

    from profharness_workloads.loadgen.messages import Tensor

    x = np.arange(6, dtype="f4").reshape(2, 3)
    data = json.loads(files.input_data([[Tensor("x", "FP32", x)]], True))["data"]
    assert [
        np.frombuffer(base64.b64decode(one["x"]["b64"]), "f4").tolist() for one in data
    ] == x.tolist()
    assert data[0]["x"]["shape"] == [3]


@pytest.mark.slow
def test_secret_arguments_reach_it_and_no_file_of_the_run(tmp_path: Path, stand_in: Path) -> None:
    """The stand-in ends with whatever level was asked for, which is all that is needed here."""
    header = "--header=Authorization: Bearer hunter2PERFANALYZER"
    token = "hunter2TOKEN"
    with running.server(tmp_path, service_ms=2, token=token) as served:
        words = ("--url", f"http://{served.description['http']}", "--model", "double")
        load = ("--shape", "x:16", "--concurrency", "1", "--time", "0.5", "--telemetry", "off")
        via = ("--via", "perf-analyzer", f"--perf-analyzer-arg={header}")
        done = started.run(
            *("run", "-o", "run", "--quiet", *words, *load, *via),
            cwd=tmp_path,
            env={
                **os.environ,
                "PROFHARNESS_PERF_ANALYZER": str(stand_in),
                "PROFHARNESS_CACHE": str(tmp_path / "cache"),
                "PROFHARNESS_TOKEN": token,
                "ARGV_TO": str(tmp_path / "argv.json"),
            },
        )
    argv = json.loads((tmp_path / "argv.json").read_text())
    assert header in argv, done.stderr
    assert any(token in word for word in argv)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []


@pytest.mark.slow
@pytest.mark.alone
def test_the_real_one_on_a_real_server_of_ours(tmp_path: Path) -> None:
    """The stand-in KServe server lacks what perf_analyzer asks before it starts, so this needs
    PyTriton.
    """
    for module in ("pytriton", "tritonclient"):
        pytest.importorskip(module)
    if (
        not (running.ROOT / ".tools" / "perf-analyzer" / "perf_analyzer").exists()
        and "PROFHARNESS_PERF_ANALYZER" not in os.environ
    ):
        pytest.skip("needs perf_analyzer: `make perf-analyzer`")
    from tests.wrappers.triton import Server

    server = Server(
        tmp_path / "server",
        {"model": "sleep:10ms", "name": "model", "max_batch_size": 1, "instances": 2},
    )
    try:
        spec = {"model": "model", "managed": False, "shapes": {}}
        theirs = running.level(
            tmp_path / "theirs",
            server.ready_path,
            worker=DRIVER,
            concurrency=4,
            seconds=3.0,
            spec=spec,
        )
        ours = running.level(
            tmp_path / "ours", server.ready_path, concurrency=4, seconds=2.0, spec=spec
        )
        assert server.end()[0] == 0
    finally:
        server.kill()
    assert theirs.result.ok, theirs.result.error + theirs.log
    assert ours.result.ok, ours.result.error + ours.log
    rates = [one.figures().request_rate for one in (ours, theirs)]
    assert ours.figures().little.holds, ours.figures().little
    # on a busy machine perf_analyzer sends its next request late, so that it holds less than its
    # four: the finding littles-law would say so
    little = theirs.figures().little
    assert little.product == pytest.approx(little.held, rel=0.03)
    assert little.held == pytest.approx(4, rel=0.1)
    # a loose bound: the benchmark compares them over several rounds, a busy machine may slow one of
    # two single runs
    assert rates[0] / rates[1] == pytest.approx(1, abs=0.35)
    for one in (ours, theirs):
        assert one.level.server_cpu_ns is not None
        assert 0 < one.level.server_cpu_ns < one.level.window_ns * (os.cpu_count() or 1)
    parts = ours.figures().parts
    assert parts is not None
    assert parts.complete, parts
