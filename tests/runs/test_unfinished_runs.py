"""Runs that did not reach their end: what is missing is named, `ls` tells them apart, refusals are
told once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from profharness.analysis.run.checks import incomplete_findings
from profharness.errors import InputError
from profharness.findings import Finding
from profharness.measure.point_results import PointResults
from profharness.measure.progress import NullProgress
from profharness.measure.recorder import Recorder
from profharness.rundir import harness_process
from profharness.rundir.manifest import (
    HarnessRecord,
    Manifest,
    PassRecord,
    PassState,
    PointRecord,
    ScanRecord,
)
from profharness.rundir.paths import RunDir
from profharness.scans.batch import BatchScan
from profharness.scans.contract import Point, PointOutput, StreamOutput
from tests import started
from tests.processes import gone

ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
ONNX = ("--backend", "onnxruntime")
KEYS = ("torch-b1", "torch-b2", "torch-b1~1")


def manifest(
    bare: PassState, *, measured: int = 3, state: str = "done", second: PassState = "done"
) -> Manifest:
    points = tuple(
        PointRecord(id=key.partition("~")[0], repeat=int("~" in key), pass_name="bare")
        for key in KEYS[:measured]
    )
    return Manifest(
        id="r",
        created="2026-01-01T00:00:00Z",
        profharness="0",
        kind="scan",
        argv=(),
        state=state,  # type: ignore[arg-type]  # a text of the tests' table
        scan=ScanRecord(name="s", planned={"bare": KEYS}),
        passes=(PassRecord(name="bare", state=bare), PassRecord(name="torch", state=second)),
        points=points,
    )


def only(found: tuple[Finding, ...]) -> Finding:
    assert [(one.id, one.severity) for one in found] == [("run-incomplete", "error")]
    return found[0]


def test_a_complete_run_lacks_nothing() -> None:
    assert incomplete_findings(manifest("done"), "done") == ()


def test_missing_points_and_passes_are_named() -> None:
    text = only(
        incomplete_findings(
            manifest("interrupted", measured=1, state="interrupted", second="planned"),
            "interrupted",
        )
    ).message
    assert text == (
        "the run was interrupted; the bare pass was interrupted: "
        "2 of 3 points are missing (torch-b2, torch-b1~1); "
        "the torch pass never began"
    )
    assert (
        "was killed"
        in only(incomplete_findings(manifest("running", state="running"), "killed")).message
    )
    assert (
        "had not ended"
        in only(incomplete_findings(manifest("running", state="running"), "running")).message
    )
    assert (
        "2 of 3 points" in only(incomplete_findings(manifest("done", measured=1), "done")).message
    )
    failed = msgspec.structs.replace(manifest("failed", state="failed"), error="no such device")
    assert "no such device" in only(incomplete_findings(failed, "failed")).message


@pytest.mark.parametrize(
    ("planned", "said"), [(KEYS[:1], "never began (1 point)"), (KEYS, "never began (3 points)")]
)
def test_one_point_is_told_in_the_singular(planned: tuple[str, ...], said: str) -> None:
    run = manifest("interrupted", measured=2, state="interrupted", second="planned")
    assert run.scan is not None
    scan = msgspec.structs.replace(run.scan, planned={"bare": KEYS, "torch": planned})
    text = only(incomplete_findings(msgspec.structs.replace(run, scan=scan), "interrupted")).message
    assert "1 of 3 points is missing (torch-b1~1)" in text
    assert text.endswith(said)


@pytest.mark.parametrize(("began", "found"), [("interrupted", []), ("running", ["run-incomplete"])])
def test_an_attachment_that_ctrl_c_ended_lacks_nothing(began: PassState, found: list[str]) -> None:
    """But for one that Ctrl-C met before the tool had attached."""
    made = msgspec.structs.replace(
        manifest(began, state="interrupted"), kind="command", scan=None, points=(), attached=42
    )
    assert [one.id for one in incomplete_findings(made, "interrupted")] == found


def test_a_harness_that_is_gone_is_told_from_one_that_works() -> None:
    own = harness_process.identify()
    assert harness_process.is_gone(own) is False
    assert (
        harness_process.is_gone(msgspec.structs.replace(own, start_ticks=own.start_ticks + 1))
        is True
    ), "the pid was given away again"
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert harness_process.is_gone(msgspec.structs.replace(own, pid=ended.pid)) is True
    assert harness_process.is_gone(msgspec.structs.replace(own, boot_id="another")) is True
    assert (
        harness_process.is_gone(msgspec.structs.replace(own, boot_id="another", host="elsewhere"))
        is None
    )
    assert harness_process.is_gone(msgspec.structs.replace(own, namespace="pid:[1]")) is None


def test_only_a_run_that_says_running_can_be_killed() -> None:
    gone = HarnessRecord(
        pid=1,
        host="h",
        boot_id=harness_process.identify().boot_id,
        start_ticks=-1,
        namespace=harness_process.identify().namespace,
    )
    assert (
        harness_process.state_of(
            msgspec.structs.replace(manifest("running", state="running"), harness=gone)
        )
        == "killed"
    )
    assert (
        harness_process.state_of(msgspec.structs.replace(manifest("done"), harness=gone)) == "done"
    )
    assert harness_process.state_of(manifest("running", state="running")) == "running"


def test_an_error_of_ours_and_ctrl_c_end_the_state_running(tmp_path: Path) -> None:
    recorder = Recorder(
        RunDir.create(tmp_path / "r"), manifest("running", state="running", second="planned")
    )
    recorder.set_ended(InputError("the model is no model"))
    kept = RunDir(tmp_path / "r").read_manifest()
    assert (kept.state, kept.error, [record.state for record in kept.passes]) == (
        "failed",
        "the model is no model",
        ["failed", "planned"],
    )
    recorder = Recorder(RunDir.create(tmp_path / "s"), manifest("running", state="running"))
    recorder.set_ended(KeyboardInterrupt())
    assert RunDir(tmp_path / "s").read_manifest().state == "interrupted"


def results(tmp_path: Path) -> tuple[PointResults, Recorder]:
    recorder = Recorder(
        RunDir.create(tmp_path / "r"), manifest("running", measured=0, state="running")
    )
    scan = BatchScan(name="s", backends=("torch",), points=(), profile_points=(), settings={})
    return PointResults(scan, "bare", recorder, NullProgress()), recorder


def test_a_repeat_of_a_failed_point_is_no_second_finding(tmp_path: Path) -> None:
    taken, recorder = results(tmp_path)
    for key, repeat, ok in (
        ("p1", 0, False),
        ("p2", 0, False),
        ("p3", 0, True),
        ("p1", 1, False),
        ("p3", 1, False),
    ):
        taken.take(
            Point(id=key, backend="torch", batch_size=1, repeat=repeat),
            PointOutput(ok=ok, error="" if ok else "RuntimeError: x"),
        )
    assert len(recorder.manifest.points) == 5
    said = [one.message for one in recorder.manifest.findings]
    assert [words.partition(" failed")[0] for words in said] == ["p1", "p2", "p3"]
    assert "measured again" in said[2]
    assert not any("~" in words for words in said)


@pytest.mark.parametrize(
    ("counts", "says"), [((0, 0), "no process ended a batch"), ((3, 0), "process 1 ended no batch")]
)
def test_a_process_too_slow_for_the_window_is_a_failed_point_with_the_way_out(
    counts: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    taken, recorder = results(tmp_path)
    folder = recorder.run.point_dir("bare", "p1")
    for index, batches in enumerate(counts):
        (folder / f"{index}.i64").write_bytes(np.arange(2 * batches, dtype="<i8").tobytes())
    streams = tuple(
        StreamOutput(index=index, pid=7, cpus=(0,), file=f"{index}.i64", batches=batches)
        for index, batches in enumerate(counts)
    )
    taken.take(
        Point(id="p1", backend="torch", batch_size=16, processes=2),
        PointOutput(ok=True, items=16, streams=streams),
    )
    (point,) = recorder.manifest.points
    assert (point.state, says in point.error, "raise --time" in point.error) == (
        "failed",
        True,
        True,
    )
    assert [one.id for one in recorder.manifest.findings] == ["point-failed"]


def test_a_worker_that_never_began_is_one_finding(tmp_path: Path) -> None:
    taken, recorder = results(tmp_path)
    for key in ("p1", "p2", "p3"):
        taken.take(
            Point(id=key, backend="torch", batch_size=1),
            PointOutput(ok=False, begun=False, error="the worker exited 1"),
        )
    assert [one.message for one in recorder.manifest.findings] == [
        "no point from p1 on was measured in the bare pass: the worker exited 1"
    ]


def profharness(
    *words: str, cwd: Path, cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return started.run(
        *words, cwd=cwd, env={**ENV, "PROFHARNESS_CACHE": str(cache or cwd / "cache")}, timeout=280
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--model", "text.onnx"), 4, "onnxruntime cannot load it"),
        (("--model", "cut.pt"), 4, "not a readable TorchScript file"),
        (("--inputs", "junk.npz", *ONNX), 4, "not an .npz file"),
        (("--shape", "nosuch:3,100", *ONNX), 2, "no input of the model"),
        (("--shape", "pf_points:3,100"), 2, "does not fit"),
    ],
)
def test_what_a_worker_refuses_is_told_once_with_its_code(
    tmp_path: Path, model_cache: Path, options: tuple[str, ...], code: int, says: str
) -> None:
    for name in ("text.onnx", "cut.pt", "junk.npz"):
        (tmp_path / name).write_text("no such thing\n")
    done = profharness(
        "run",
        "particlenet",
        *options,
        "--batch-sizes",
        "1,2",
        "--telemetry",
        "off",
        "-o",
        "run",
        cwd=tmp_path,
        cache=model_cache,
    )
    assert done.returncode == code, done.stderr
    message = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert says in message
    assert len(message) < 200
    assert not any(
        words in done.stderr + done.stdout
        for words in ("miniz", "ONNXRuntimeError", "~1", "4/4", "pickle")
    )
    assert RunDir(tmp_path / "run").read_manifest().state == "failed"
    assert profharness("ls", ".", cwd=tmp_path).stdout.startswith("failed ")


@pytest.mark.slow
def test_a_killed_command_run_is_listed_and_reported_as_such(tmp_path: Path) -> None:
    root = tmp_path / "run"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "profharness",
            "run",
            "--telemetry",
            "off",
            "-o",
            str(root),
            "--",
            "sleep",
            "20",
        ],
        env=ENV,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        (root / "manifest.json").exists()
        and RunDir(root).read_manifest().passes[0].state == "running"
    ):
        time.sleep(0.02)
    assert profharness("ls", ".", cwd=tmp_path).stdout.startswith("running ")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert profharness("ls", ".", cwd=tmp_path).stdout.startswith("killed ")
    done = profharness("report", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = msgspec.json.decode(done.stdout)["findings"][0]
    assert first["id"] == "run-incomplete"
    assert "was killed" in first["message"]
    assert "pass did not end" in first["message"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_two_processes_ends_the_run_with_all_that_it_started(
    tmp_path: Path, number: int
) -> None:
    """While the devices rest, before the first worker."""
    root = tmp_path / "run"
    words = ["run", "particlenet", "--idle-seconds", "300", "--telemetry", "cpu", "-o", str(root)]
    process = subprocess.Popen(
        [sys.executable, "-m", "profharness", *words],
        env=ENV,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(root.glob("telemetry/*.ready.json")):
        time.sleep(0.02)
    (ready,) = root.glob("telemetry/*.ready.json")
    sampler = msgspec.json.decode(ready.read_bytes())["pid"]
    time.sleep(0.2)  # from the sampler's word into the rest
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in said) == (128 + number, False)
    assert "go on by `profharness run --resume" in said
    assert RunDir(root).read_manifest().state == "interrupted"
    while time.monotonic() < deadline and not gone(sampler):
        time.sleep(0.02)
    assert gone(sampler)
