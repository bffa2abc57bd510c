"""Runs that are taken up again: who may, what is shown first, and which points are measured again;
with stand-ins in place of the model server and the load generator.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.rundir.paths import RunDir
from profharness.scans.contract import key_of
from tests import started
from tests.processes import all_end, naming

RUNNER = Path(__file__).parent.parent / "fakes" / "stand_in_run.py"
SWEEP = ("--via", "triton", "--model", "sleep:20ms", "--telemetry", "off", "--time", "1")


def begin(*words: str, cwd: Path, **does: object) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "STAND_IN": json.dumps(does),
        "PROFHARNESS_CACHE": str(cwd / "cache"),
    }
    argv = [sys.executable, str(RUNNER), "run", *words, "--quiet"]
    return started.python(argv, started.COMMAND_LINE, cwd=cwd, env=environment)


def run(*words: str, cwd: Path, **does: object) -> subprocess.CompletedProcess[str]:
    with begin(*words, cwd=cwd, **does) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def measured(root: Path) -> dict[str, str]:
    return {key_of(one): one.state for one in RunDir(root).read_manifest().points}


def changed(root: Path, **settings: Any) -> None:
    """Somebody who may write there changes what the run asks for."""
    path = root / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["scan"]["settings"].update(settings)
    path.write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unfinished")
    killed = run(
        *SWEEP, "--concurrency", "1,2", "-o", "run", cwd=folder, kill_harness_at="sleep-b1-c2"
    )
    assert killed.returncode == -9, killed.stderr
    assert (folder / "run" / "holder.json").exists(), "it had no time to give the run back"
    all_end(naming(folder), 60)  # the sampler outlives the harness, and closes its files
    return folder / "run"


@pytest.mark.slow
def test_a_run_from_elsewhere_is_shown_first_and_only_started_when_agreed(
    unfinished: Path, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    shutil.copytree(unfinished, root)
    canary = tmp_path / "their\x1b[2Jpython"
    canary.write_text(f'#!/bin/sh\ntouch {tmp_path}/started\nexec {sys.executable} "$@"\n')
    canary.chmod(0o755)
    changed(root, python=str(canary))
    refused = run("--resume", "-o", "run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "was not made by you on this host, and nobody can be asked" in refused.stderr
    assert "--yes" in refused.stderr
    assert "their\\x1b[2Jpython" in refused.stderr, "the interpreter is shown, and shown harmlessly"
    assert "\x1b" not in refused.stderr
    assert not (tmp_path / "started").exists(), "not even the node was asked for its devices"
    assert measured(root) == measured(unfinished)
    done = run("--resume", "--yes", "-o", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "started").exists()
    assert len(measured(root)) == 4
    assert not (root / "holder.json").exists()


@pytest.mark.slow
def test_an_own_run_goes_on_unasked_until_somebody_changes_it(unfinished: Path) -> None:
    kept = (unfinished / "manifest.json").read_bytes()
    changed(unfinished, model="sleep:21ms")
    refused = run("--resume", "-o", str(unfinished), cwd=unfinished.parent)
    assert (refused.returncode, "nobody can be asked" in refused.stderr) == (2, True)
    (unfinished / "manifest.json").write_bytes(kept)
    two = [
        begin("--resume", "-o", str(unfinished), cwd=unfinished.parent),
        begin("--resume", "-o", str(unfinished), cwd=unfinished.parent),
    ]
    ended = [(one.communicate(timeout=120)[1], one.returncode) for one in two]
    assert sorted(status for _, status in ended) == [0, 2], ended
    assert all("this run has not ended" in said for said, status in ended if status)
    assert len(measured(unfinished)) == 4
    trials = [one.name for one in (unfinished / "control" / "bare").rglob("results-*.jsonl")]
    assert len(trials) == len(set(trials))


@pytest.mark.slow
def test_points_that_failed_are_measured_again_when_asked(tmp_path: Path) -> None:
    first = run(
        *SWEEP, "--concurrency", "1,2,4", "-o", "run", cwd=tmp_path, server_dies_at="sleep-b1-c2"
    )
    assert first.returncode == 1, first.stderr
    root = tmp_path / "run"
    before = measured(root)
    assert [key for key, state in before.items() if state == "failed"] == ["sleep-b1-c2"]
    kept = RunDir(root).read_manifest().points
    nothing = run("--resume", "-o", "run", cwd=tmp_path)
    assert "nothing is missing" in nothing.stderr
    assert measured(root) == before
    again = run("--resume", "--retry-failed", "-o", "run", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert measured(root).keys() == before.keys()
    assert set(measured(root).values()) == {"ok"}
    after = RunDir(root).read_manifest()
    assert [one for one in after.points if one.id != "sleep-b1-c2"] == [
        one for one in kept if one.state == "ok"
    ], "what was measured stays"
    assert "point-failed" not in {one.id for one in after.findings}


def test_retry_failed_goes_with_resume(tmp_path: Path) -> None:
    wrong = run(*SWEEP, "--retry-failed", "-o", "run", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--resume" in wrong.stderr


@pytest.mark.slow
def test_nothing_outside_of_the_run_is_cleared_or_written(unfinished: Path, tmp_path: Path) -> None:
    root, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(unfinished, root)
    (outside / "precious").mkdir(parents=True)
    (outside / "precious" / "thesis.tex").touch()
    (root / "points" / "theirs").symlink_to(outside)
    refused = run("--resume", "--yes", "-o", "run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "leads out of the run directory" in refused.stderr
    assert (outside / "precious" / "thesis.tex").exists()
    assert not (root / "holder.json").exists()
