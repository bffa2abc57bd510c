"""A job array of twenty values on a real Slurm of two nodes: one task fails and is run again."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.slurm.cluster import Cluster
from tests.slurm.jobs import done, exit_status, start, submitted

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

SIZES = range(1, 21)
FAILS = 7
PROFHARNESS = (sys.executable, "-m", "profharness")
SHORT = ("--trials", "4", "--min-seconds", "0", "--telemetry", "off", "--quiet", "-o", "all")
SCAN = (
    *("--model", "relu.onnx", "--backend", "onnxruntime", "--device", "cpu"),
    *("--batch-sizes", ",".join(map(str, SIZES)), *SHORT),
)


def relu(path: Path) -> None:
    """A model that takes no time."""
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 8]) for name in ("x", "y")
    ]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def asked(cluster: Cluster, folder: Path, *words: str) -> tuple[int, str, str]:
    return done(start(cluster, folder, (*PROFHARNESS, *words)))


def tasks(cluster: Cluster, folder: Path) -> dict[int, str]:
    """The states by number, as `report` has them."""
    status, out, err = asked(cluster, folder, "report", "all", "--json")
    assert status == 0, err
    return {row["task"]["number"]: row["state"] for row in json.loads(out)["tasks"]}


def test_twenty_values_of_which_one_fails_and_is_measured_alone(
    cluster: Cluster, tmp_path: Path
) -> None:
    relu(tmp_path / "relu.onnx")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/onnxruntime.py").write_text("raise ImportError('broken')")
    breaks = f'[ "$SLURM_ARRAY_TASK_ID" != {FAILS} ] || export PYTHONPATH="$PWD/broken"'
    line = ("run", "--launcher", "slurm", "--array", "all%5", "--job-line", breaks, *SCAN)
    status, _, err = asked(cluster, tmp_path, *line)
    assert status not in (0, 143), err
    assert f"{len(SIZES)} of {len(SIZES)} tasks have ended" not in err  # --quiet
    states = tasks(cluster, tmp_path)
    assert {number for number, state in states.items() if state != "done"} == {FAILS}
    assert len(states) == len(SIZES)
    hosts = set()
    for path in (tmp_path / "all").glob("*/manifest.json"):
        hosts |= {node["host"] for node in json.loads(path.read_bytes())["nodes"]}
    assert hosts == {"n1", "n2"}

    lacks = f"1 of {len(SIZES)} tasks lack a run that is done: {FAILS} (batch_sizes={FAILS + 1})"
    for command in ("saturation", "ls"):
        status, out, err = asked(cluster, tmp_path, command, "all", "--json")
        assert (status, lacks in err) == (0, True), (out, err)
    status, out, err = asked(cluster, tmp_path, "report", "all")
    assert (status, "tasks-missing" in out) == (0, True), (out, err)

    own = shlex.join(("srun", *PROFHARNESS, "run", "--array", "all", *SCAN))
    (tmp_path / "own.sh").write_text(f"#!/bin/bash\n{own}\n")
    job = submitted(cluster, tmp_path, f"--array={FAILS}", "own.sh")
    assert exit_status(cluster, job) == 0
    assert set(tasks(cluster, tmp_path).values()) == {"done"}
    status, out, err = asked(cluster, tmp_path, "saturation", "all", "--json")
    assert (status, "lack" in err) == (0, False), err
    levels = [level for curve in json.loads(out)["series"] for level in curve["levels"]]
    assert levels == list(SIZES)
    status, _, err = asked(cluster, tmp_path, "run", *line[1:3], "--array", "missing", *SCAN)
    assert (status, "all tasks in all are done or run" in err) == (2, True), err
    left = {path.name for path in (tmp_path / "all").iterdir() if not path.is_dir()}
    assert left == {"array.json", "report.html", "results.csv"}
