"""Runs whose torch layer also records modules, Python functions and the allocator."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.rundir.paths import RunDir
from profharness.understand import report_run as understand
from tests import needs, started

needs.packages("torch")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("runs")]
BOTH = ("--profile", "torch", "--stacks", "--profile-memory", "--telemetry", "off")
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
TRAIN = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.inner(x))

def train_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()

model = torch.nn.Sequential(Block(), Block())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    train_step(model, optimizer)
"""
SCAN = """
scan = "particlenet"
backend = ["torch"]
profile = ["torch"]
stacks = true
profile_memory = true
telemetry = "off"
batch_sizes = [2]
trials = 2
profile_trials = 2
min_seconds = 0
threads = 1
"""


def recorded(root: Path) -> list[dict[str, Any]]:
    """The events of the run's only file of torch's profiler."""
    (path,) = (root / "artifacts" / "torch").rglob("*.json.gz")
    found: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return found


def names(events: list[dict[str, Any]], category: str) -> list[str]:
    return [event["name"] for event in events if event.get("cat") == category]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stacks")
    (folder / "train.py").write_text(TRAIN)
    words = ("run", *BOTH, "--capture", "steps=4:8", "-o", "run", "--", sys.executable, "train.py")
    done = started.run(*words, cwd=folder, env=ENV, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_modules_and_functions_stand_in_the_file(trained: Path) -> None:
    functions = names(recorded(trained), "python_function")
    modules = [name for name in functions if name.startswith("nn.Module: ")]
    assert set(modules) == {
        f"nn.Module: {kind}"
        for kind in ("Sequential_0", "Block_0", "Block_1", "Linear_0", "Linear_1")
    }
    assert modules.count("nn.Module: Block_1") == 4  # the steps that were asked for
    assert any(re.fullmatch(r".*train\.py\(12\): train_step", name) for name in functions)


def test_the_asked_steps_are_recorded_whole(trained: Path) -> None:
    (sidecar,) = (trained / "artifacts" / "torch").rglob("*.profharness.json")
    window = json.loads(sidecar.read_text())["window"]
    assert (window["first_step"], window["steps"], window["truncated"]) == (4, 4, False)


def test_the_allocator_is_in_the_figures_and_in_the_merged_trace(trained: Path) -> None:
    instants = [event for event in recorded(trained) if event.get("cat") == "cpu_instant_event"]
    highest = max(event["args"]["Total Allocated"] for event in instants)
    assert highest >= 32 * 64 * 4  # one input of a step
    loaded = understand.load([trained])
    samples = loaded.trace.samples
    found = samples.value[samples.metric == loaded.trace.strings.find("torch_allocated")]
    assert (len(found), found.max()) == (len(instants), highest)
    shown = started.run("metrics", str(trained), "--json", cwd=trained, env=ENV, timeout=300)
    assert 0 < json.loads(shown.stdout)["metrics"]["torch_host_allocated_peak"]["value"] <= highest
    merged = trained.parent / "merged.pftrace"
    words = ("merge", str(trained), "-o", str(merged))
    assert started.run(*words, cwd=trained, env=ENV, timeout=300).returncode == 0
    back = understand.load([merged]).trace
    of_torch = back.samples.metric == back.strings.find("torch_allocated")
    assert back.samples.value[of_torch].max() == highest
    assert b"Memory of torch" in merged.read_bytes()


def test_tables_show_the_program_and_not_the_harness(trained: Path) -> None:
    def rows(by: str) -> list[dict[str, Any]]:
        words = ("hotspots", str(trained), "--by", by, "--json")
        shown = started.run(*words, cwd=trained, env=ENV, timeout=300)
        found: list[dict[str, Any]] = json.loads(shown.stdout)["rows"]
        return found

    assert {row["name"]: row["calls"] for row in rows("range")} == {
        "step": 4,
        "Optimizer.step#SGD.step": 4,
        "Optimizer.zero_grad#SGD.zero_grad": 4,
    }
    stacks = [row["name"] for row in rows("stack")]
    assert any(re.match(r".*train\.py\(12\): train_step", name) for name in stacks)
    assert not [name for name in stacks if "_follow" in name or "_bootstrap" in name]


def test_options_of_a_scan_file_reach_the_worker(tmp_path: Path, model_cache: Path) -> None:
    (tmp_path / "deep.toml").write_text(SCAN)
    env = {**ENV, "PROFHARNESS_CACHE": str(model_cache)}
    plan = started.run("run", "deep.toml", "--dry-run", cwd=tmp_path, env=env, timeout=300)
    bare, _, traced = plan.stdout.partition("pass torch")
    for variable in ("PROFHARNESS_STACKS=1", "PROFHARNESS_PROFILE_MEMORY=1"):
        assert variable in traced
        assert variable not in bare
    words = ("run", "deep.toml", "-o", "run", "--quiet")
    done = started.run(*words, cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    events = recorded(tmp_path / "run")
    assert any(name.startswith("nn.Module: ") for name in names(events, "python_function"))
    assert "[memory]" in names(events, "cpu_instant_event")


def test_a_process_that_computes_nothing_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("import torch\nprint(sum(len(str(i)) for i in range(99)))\n")
    words = ("run", *BOTH, "--capture", "all", "-o", "run", "--", sys.executable, "idle.py")
    done = started.run(*words, cwd=tmp_path, env=ENV, timeout=300)
    assert done.returncode == 0, done.stderr
    (process,) = RunDir(tmp_path / "run").read_manifest().processes
    assert process.frameworks["torch"]
    assert not list((tmp_path / "run" / "artifacts").rglob("trace-*"))
