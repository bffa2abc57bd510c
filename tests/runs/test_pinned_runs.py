"""Multi-process scans: their points, refusals of bad topologies, and whole runs with pinned
processes and a killed one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness import scans
from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir.paths import RunDir
from profharness.understand import report_run as understand

CPUS = sorted(os.sched_getaffinity(0))
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def topology(folder: Path, lists: object) -> str:
    path = folder / "places.json"
    path.write_text(json.dumps(lists))
    return str(path)


def asked(folder: Path, lists: object, **settings: object) -> scans.Scan:
    request = from_mapping({"topology": topology(folder, lists), **settings}, COMMAND_LINE)
    return scans.create(request, Environment(cpus_allowed=tuple(range(16))))


def test_points_are_processes_by_batch_sizes_with_the_ends_again(tmp_path: Path) -> None:
    scan = asked(tmp_path, [[0], [1], [2], [3], [4]], batch_sizes="2,8", time=7.0)
    assert [point.key for point in scan.points] == [
        f"torch-b{size}-n{count}" for size in (2, 8) for count in (1, 2, 4, 5)
    ] + ["torch-b2-n1~1", "torch-b8-n5~1"]
    assert scan.points[0].params["seconds"] == 7.0
    assert all(point.params["seconds"] == 1.0 for point in scan.profiled("torch"))
    assert len(scan.profiled("torch")) == 8


def test_a_single_point_is_repeated_once(tmp_path: Path) -> None:
    assert [point.key for point in asked(tmp_path, [[0]], streams="1").points] == [
        "torch-b16-n1",
        "torch-b16-n1~1",
    ]


def test_devices_of_the_topology_reach_the_worker(tmp_path: Path) -> None:
    scan = asked(
        tmp_path,
        [{"cpus": [0], "device": "cuda:0"}, {"cpus": "1-2", "device": "cuda:1"}],
        streams="2",
    )
    assert scan.workload("torch").settings["places"] == [
        {"cpus": [0], "device": "cuda:0"},
        {"cpus": [1, 2], "device": "cuda:1"},
    ]


def test_without_a_file_there_is_a_place_for_every_process(tmp_path: Path) -> None:
    request = from_mapping({"streams": str(len(CPUS))}, COMMAND_LINE)
    scan = scans.create(request, Environment(cpus_allowed=tuple(CPUS)))
    assert len(scan.workload("torch").settings["places"]) >= len(CPUS)
    with pytest.raises(UsageError, match="the topology holds"):
        scans.create(
            from_mapping({"streams": "4096"}, COMMAND_LINE), Environment(cpus_allowed=tuple(CPUS))
        )


def planned(words: dict[str, object], cpus: int = 8) -> scans.Scan:
    """On a job of so many CPUs, whose caches are not known here: all share one."""
    request = from_mapping(words, COMMAND_LINE)
    return scans.create(request, Environment(cpus_allowed=tuple(range(4000, 4000 + cpus))))


def test_plans_fill_the_job_with_processes_of_so_many_cores() -> None:
    scan = planned({"cores_per_process": "8,4,2,1"})
    assert [point.key for point in scan.points] == [
        *("torch-b16-n1-c8", "torch-b16-n2-c4", "torch-b16-n4-c2", "torch-b16-n8-c1"),
        *("torch-b16-n1-c8~1", "torch-b16-n8-c1~1"),
    ]
    two = scan.points[1]
    assert (two.processes, two.cores_per_process) == (2, 4)
    assert two.params["places"] == [[4000, 4001, 4002, 4003], [4004, 4005, 4006, 4007]]
    assert scan.notes == ()


def test_plans_that_do_not_fit_are_left_out_and_said() -> None:
    scan = planned({"cores_per_process": "1,2", "streams": "1,2,4"}, cpus=4)
    assert [point.id for point in scan.points if not point.repeat] == [
        f"torch-b16-n{count}-c{cores}" for cores, count in ((2, 1), (2, 2), (1, 1), (1, 2), (1, 4))
    ]
    assert scan.notes == ("plans of more cores than this job has are left out (N x M): 4 x 2",)
    with pytest.raises(UsageError, match="no plan of 3 x 2 fits this job's 4 cores"):
        planned({"cores_per_process": "2", "streams": "3"}, cpus=4)
    with pytest.raises(UsageError, match="--cores-per-process 8: this job may use 4 cores"):
        planned({"cores_per_process": "8"}, cpus=4)


@pytest.mark.parametrize(
    ("lists", "words", "said"),
    [
        ([[0], [0]], [], "stands in it more than once"),
        ([[CPUS[0]], [4095]], [], "CPU 4095 is not among those that this job may use"),
        ([[CPUS[0]]], ["--streams", "2"], "the topology holds 1 list"),
        ([CPUS[0]], [], "entry 0 is not a list of CPU ids"),
        ([[CPUS[0]]], ["--trials", "5"], "--trials is for scans of one process"),
        ([[CPUS[0]]], ["--cores-per-process", "1"], "both say which cores each process gets"),
        ([[CPUS[0]]], ["--via", "triton"], "a scan that runs the model directly"),
        ([[CPUS[0]]], ["--pin", "socket"], "--pin"),
    ],
)
def test_bad_topologies_and_words_are_refused_before_anything_is_written(
    tmp_path: Path, lists: object, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_cli(
        [
            "run",
            "particlenet",
            "--topology",
            topology(tmp_path, lists),
            "-o",
            str(tmp_path / "run"),
            *words,
        ]
    )
    assert status in (2, 4)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_pinning_without_processes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["run", "particlenet", "--pin", "numa"]) == 2
    assert "--topology FILE, --streams" in capsys.readouterr().err


@pytest.fixture(scope="module")
def cache(model_cache: Path) -> dict[str, str]:
    return {**ENV, "PROFHARNESS_CACHE": str(model_cache)}


def start(folder: Path, env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    path = topology(folder, [[CPUS[0]], [CPUS[-1]]] if len(CPUS) > 1 else [[CPUS[0]]])
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "profharness",
            "run",
            "particlenet",
            "--backend",
            "onnxruntime",
            "--topology",
            path,
            "--batch-sizes",
            "2",
            "--telemetry",
            "cpu",
            "-o",
            "run",
            *words,
        ],
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs to part")
def test_a_run_tells_where_each_process_ran_and_what_they_did_together(
    tmp_path: Path, cache: dict[str, str]
) -> None:
    process = start(
        tmp_path, cache, "--time", "0.4", "--warmup-time", "0.1", "--profile", "onnxruntime"
    )
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    for line in (
        "Original Model Path: particlenet",
        "Batch Size: 2",
        "Throughput (items/sec): ",
        "Latency Std (ms/batch): ",
        "Iterations: ",
    ):
        assert line in out
    manifest = RunDir(tmp_path / "run").read_manifest()
    both = next(
        record
        for record in manifest.points
        if record.id == "onnxruntime-b2-n2" and record.pass_name == "bare" and not record.repeat
    )
    assert [stream.cpus for stream in both.streams] == [(CPUS[0],), (CPUS[-1],)]
    loaded = understand.load([tmp_path / "run"])
    summary = understand.summarise(loaded)
    point = next(point for point in summary.points if point.processes == 2)
    assert point.classic is not None
    assert point.classic.iterations == sum(stream.batches for stream in both.streams)
    assert point.throughput == pytest.approx(
        point.classic.throughput, rel=0.5
    )  # other windows, on a machine that is not alone
    assert point.metrics["process_spread"].value >= 0
    pids = {
        source.pid
        for source in loaded.trace.sources
        if source.layer == "trials" and source.point == "onnxruntime-b2-n2"
    }
    assert {stream.pid for stream in both.streams} <= pids
    assert (
        len(
            [
                artifact
                for artifact in manifest.artifacts
                if artifact.layer == "onnxruntime" and artifact.point == "onnxruntime-b2-n2"
            ]
        )
        == 2
    )
    assert summary.series[0].axis == "processes"


@pytest.mark.slow
def test_a_killed_process_is_an_error_and_never_a_hang(
    tmp_path: Path, cache: dict[str, str]
) -> None:
    process = start(tmp_path, cache, "--time", "60", "--streams", "1")
    deadline = time.monotonic() + 120
    while not (found := _streams(process.pid)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    began = time.monotonic()
    killed = 0
    while process.poll() is None and time.monotonic() < began + 150:
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(0.1)
        found = _streams(process.pid)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 1, err
    assert killed >= 2
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert all(
        point["state"] == "failed" and "SIGKILL" in point["error"] for point in manifest["points"]
    )
    assert (tmp_path / "run" / "report.html").is_file()


def _streams(root: int) -> list[int]:
    """Processes below `root` that run one stream of a point."""
    import psutil

    found = []
    for child in psutil.Process(root).children(recursive=True):
        try:
            if any(word.endswith("pinned/stream.py") for word in child.cmdline()):
                found.append(child.pid)
        except psutil.NoSuchProcess:
            continue
    return found
