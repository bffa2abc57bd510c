"""A whole scan of plans in the stand-in of deepsparse: what stands in the terminal, the manifest and
JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from profharness.rundir.manifest import decode
from tests import needs, small_onnx, started

needs.packages("onnx")
pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).parents[1] / "fakes" / "stand_in_deepsparse"
CPUS = sorted(os.sched_getaffinity(0))


def python(folder: Path) -> str:
    """An interpreter that has the stand-in."""
    path = folder / "python"
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH="{STAND_IN}${{PYTHONPATH:+:$PYTHONPATH}}" '
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs to part")
def test_one_scan_compares_plans_in_an_interpreter_of_its_own(tmp_path: Path) -> None:
    model = small_onnx.two_inputs(tmp_path / "two.onnx")
    before = model.read_bytes()
    done = started.run(
        *("run", "--model", str(model), "--backend", "deepsparse", "--python", python(tmp_path)),
        *("-shapes", "[2,4,3],[2,3]", "--cores-per-process", "1,2", "--streams", "1,2,4000"),
        *("--time", "0.1", "--warmup-time", "0", "--telemetry", "off", "--memory", "bind"),
        *("-o", "run", "--json"),
        cwd=tmp_path,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert "plans of more cores than this job has are left out (N x M): " in done.stderr
    assert "4000 x 1" in done.stderr
    said = json.loads(done.stdout)
    assert {"processes": 2, "cores_per_process": 1, "batch_size": 2}.items() <= next(
        point for point in said["points"] if point["point"] == "deepsparse-b2-n2-c1"
    ).items()
    assert {plan["point"] for plan in said["plans"]["plans"]} >= {
        "deepsparse-b2-n1-c2",
        "deepsparse-b2-n1-c1",
        "deepsparse-b2-n2-c1",
    }
    (share,) = [one for one in said["findings"] if one["id"] == "operators-unsupported"]
    assert share["figures"] == {"supported_operators": 0.8047}
    manifest = decode((tmp_path / "run" / "manifest.json").read_bytes(), "manifest")
    for record in manifest.points:
        assert all(len(stream.cpus) == record.cores_per_process for stream in record.streams)
        assert record.notes["supported_operators"] == "0.8047"
        assert record.notes["memory"]
    (summary,) = [
        point
        for point in json.loads((tmp_path / "run" / "summary.json").read_text())["points"]
        if point["point"] == "deepsparse-b2-n1-c2"
    ]
    assert summary["metrics"]["supported_operators"]["value"] == 0.8047
    assert model.read_bytes() == before
    assert not list((tmp_path / "run").rglob("*.onnx"))
