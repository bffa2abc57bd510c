"""Secrets of every kind in the environment and on the command line of a run: none stands in the
folder that it leaves.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import profharness
from tests import started
from tests.processes import gone
from tests.secrets.planted.kinds import KINDS

SEED = 20261125


@pytest.mark.slow
def test_a_run_puts_no_planted_secret_into_its_folder(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    env, words, secrets = dict(os.environ), [], {}
    for number, kind in enumerate(KINDS):
        shown, hidden = kind.make(draw), kind.make(draw)
        env[f"P{number}_{kind.variable.replace('-', '_')}"] = hidden
        words += [f"--{kind.variable.lower().replace('_', '-')}", shown]
        secrets[f"{kind.name} on the command line"] = kind.secret(shown)
        secrets[f"{kind.name} in the environment"] = kind.secret(hidden)
    done = started.run("run", "-o", "run", "--", "true", *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert (tmp_path / "run" / "manifest.json") in files
    contents = b"\n".join(path.read_bytes() for path in files)
    assert [name for name, secret in secrets.items() if secret.encode() in contents] == []
    assert b"[removed by profharness]" in contents


WORKLOAD = """
import os, pathlib, subprocess, sys, time
if sys.argv[1] == "parent":
    subprocess.run([sys.executable, __file__, "child", *sys.argv[2:]], check=True)
else:
    pathlib.Path("pid").write_text(str(os.getpid()))
    pathlib.Path("up").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_run_holds_no_secret_while_it_runs_nor_when_its_harness_is_killed(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORKLOAD)
    (tmp_path / "tmp").mkdir()
    given = ("--password", "hunter2a", "--token=hunter2b", "http://me:hunter2c@h/")
    program = (sys.executable, "-m", "profharness", "run", "-o", "run", "--telemetry", "off")
    harness = subprocess.Popen(
        (*program, "--", sys.executable, "work.py", "parent", *given),
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(profharness.__file__).parents[1]),
            "DB_PASSWORD": "hunter2d",
            "TMPDIR": str(tmp_path / "tmp"),
        },
    )
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "up").exists():
            assert harness.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(list((tmp_path / "run" / "control" / "hooks").glob("hello-*.json"))) == 2
        assert holding(tmp_path, b"hunter2") == []
        harness.kill()
        harness.wait()
        assert holding(tmp_path, b"hunter2") == []
    finally:
        harness.kill()
        harness.wait()
        (tmp_path / "go").touch()
        wait_for_the_workload(tmp_path)


def wait_for_the_workload(folder: Path) -> None:
    """Wait for the workload, which a killed harness leaves: a folder that is removed before it has
    looked for its word would leave it for good.
    """
    if (folder / "up").exists():
        end = time.monotonic() + 60
        while not gone((folder / "pid").read_text()):
            assert time.monotonic() < end
            time.sleep(0.01)


def holding(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.slow
def test_settings_of_a_scan_are_recorded_without_secrets(tmp_path: Path) -> None:
    """A server that does not start leaves all that a run records of it; going on is refused."""
    server = f"{sys.executable} -c 'raise SystemExit(3)' --api-key hunter2API"
    words = [
        "--server-command",
        server,
        "--ready",
        "http://me:hunter2RDY@127.0.0.1:9/",
        "--model",
        "m",
    ]
    done = started.run("run", "-o", "run", "--telemetry", "off", *words, cwd=tmp_path)
    assert done.returncode != 0
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert (tmp_path / "run" / "manifest.json") in files
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
    again = started.run("run", "--resume", "-o", "run", cwd=tmp_path)
    assert again.returncode == 2
    assert "without the secrets in its settings (ready, server_command)" in again.stderr
