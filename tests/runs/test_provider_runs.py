"""Whole runs whose onnxruntime is the stand-in with providers of GPUs: what the user is told, and
what the manifest and the report hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.options.providers import PROVIDERS
from profharness.rundir.manifest import Manifest, decode
from tests import needs, started

needs.packages("onnxruntime")
pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).parents[1] / "fakes" / "stand_in_onnxruntime"
MIGRAPHX, CPU = "MIGraphXExecutionProvider", "CPUExecutionProvider"
ONE_PROCESS = ("--trials", "2", "--min-seconds", "0", "--warmup", "0")
PINNED = ("--streams", "1", "--time", "0.1", "--warmup-time", "0")


def run(
    folder: Path, *words: str, short: tuple[str, ...] = ONE_PROCESS, **variables: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A scan of one point in a Python that has the stand-in, and its run directory."""
    (folder / "m.onnx").write_bytes(b"a model")
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{STAND_IN}${{PYTHONPATH:+:$PYTHONPATH}}" '
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    target = folder / "run"
    done = started.run(
        *("run", "--model", str(folder / "m.onnx"), "--python", str(python), *short),
        *("--batch-sizes", "2", "--telemetry", "off", "--flops-per-item", "1"),
        *("-o", str(target), *words),
        cwd=folder,
        env={**os.environ, **{f"STAND_IN_ORT_{name}": value for name, value in variables.items()}},
    )
    return done, target


def manifest(target: Path) -> Manifest:
    return decode((target / "manifest.json").read_bytes(), "manifest")


def test_what_ran_stands_in_result_report_and_manifest(tmp_path: Path) -> None:
    done, target = run(
        tmp_path,
        *("--provider", f"migraphx:migraphx_model_cache_dir={tmp_path}/c", "--provider", "cpu"),
        *("--profile", "onnxruntime", "--profile-trials", "2", "--ort-optimization", "basic"),
        "--json",
        ON_CPU="1",
        COMPILE="0.2",
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [point["providers"] for point in said["points"]] == [[MIGRAPHX, CPU]]
    on_cpu = [found for found in said["findings"] if found["id"] == "nodes-on-cpu"]
    assert [found["figures"] for found in on_cpu] == [{"nodes": 6, "on_cpu": 1}]
    bare = next(one for one in manifest(target).points if one.pass_name == "bare")
    assert bare.notes["nodes"] == f"{MIGRAPHX} 5, {CPU} 1"
    assert (bare.notes["optimization"], bare.device) == ("basic", "cuda:0")
    assert bare.compile_ns is not None
    assert bare.compile_ns >= 0.2e9
    assert "onnxruntime on MIGraphX, CPU" in (target / "report.html").read_text()
    (summary,) = json.loads((target / "summary.json").read_text())["points"]
    assert summary["metrics"]["compile_time"]["value"] == bare.compile_ns


def test_a_silent_fallback_ends_the_run_with_3(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "--provider", "migraphx", LEFT_OUT=MIGRAPHX)
    assert done.returncode == 3
    assert f"error: onnxruntime left out {MIGRAPHX} and would run on {CPU}" in done.stderr
    assert "--allow-fallback" in done.stderr


def test_an_allowed_fallback_is_a_finding(tmp_path: Path) -> None:
    done, target = run(tmp_path, "--provider", "migraphx", "--allow-fallback", LEFT_OUT=MIGRAPHX)
    assert done.returncode == 0, done.stderr
    assert (
        f"device-fallback at batch 2: onnxruntime left out {MIGRAPHX}; it ran on {CPU}"
        in " ".join(done.stdout.split())
    )
    assert manifest(target).points[0].device == "cpu"
    (point,) = json.loads((target / "summary.json").read_text())["points"]
    assert point["providers"] == [CPU]


def test_pinned_processes_refuse_as_one_does(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "--provider", "migraphx", short=PINNED, LEFT_OUT=MIGRAPHX)
    assert done.returncode == 3
    assert f"error: onnxruntime left out {MIGRAPHX} and would run on {CPU}" in done.stderr


def test_pinned_processes_tell_what_one_does(tmp_path: Path) -> None:
    done, target = run(tmp_path, "--provider", "migraphx", short=PINNED, COMPILE="0.2")
    assert done.returncode == 0, done.stderr
    (point, *_) = manifest(target).points
    assert point.notes["providers"] == f"{MIGRAPHX},{CPU}"
    assert point.compile_ns is not None
    assert point.compile_ns >= 0.19e9


@pytest.mark.parametrize("name", ["cuda", "tensorrt", "rocm", "migraphx"])
def test_a_server_without_the_provider_is_planned_and_refused(tmp_path: Path, name: str) -> None:
    """Planning needs neither; the server says what this onnxruntime lacks before Triton starts."""
    served = ("--via", "triton", "--concurrency", "1", "--time", "0.2", "--provider", name)
    planned, target = run(tmp_path, *served, "--dry-run", short=(), PROVIDERS=CPU)
    assert planned.returncode == 0, planned.stderr
    assert "triton_server.py" in planned.stdout
    assert not target.exists()
    refused, _ = run(tmp_path, *served, short=(), PROVIDERS=CPU)
    assert refused.returncode == 3
    full = PROVIDERS[name].full
    assert f"error: this onnxruntime has no {full} (it has {CPU})" in refused.stderr
    assert "or name another --provider" in refused.stderr


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_memory_of_a_device_is_planned_and_refused(tmp_path: Path, kind: str) -> None:
    served = ("--via", "triton", "--concurrency", "1", "--time", "0.2", "--shared-memory", kind)
    planned, target = run(tmp_path, *served, "--dry-run", short=())
    assert planned.returncode == 0, planned.stderr
    assert not target.exists()
