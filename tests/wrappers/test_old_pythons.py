"""Real interpreters of old versions: the hooks work on Python 3.8, and what runs on an older one
runs as without us.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import old_pythons
from tests.wrappers.running import Runner

PROGRAM = "import sys; print(sys.version_info[:2]); sys.exit(3)"


def run(python: str, runner: Runner, *words: str | Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [python, *map(str, words)],
        env=runner.environment(PROFHARNESS_LAYERS="torch"),
        cwd=runner.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_older_ones_run_as_without_us(runner: Runner, version: str) -> None:
    python = old_pythons.needed(version)
    expected = (3, f"(3, {version[2:]})\n", "")
    assert run(python, runner, "-c", PROGRAM) == expected
    hook = Path(runner.environment()["PYTHONPATH"].split(":")[0]) / "exec_hook.py"
    assert run(python, runner, hook, "-c", PROGRAM) == expected
    assert not (runner.folder / "hooks").exists()


def test_the_hooks_work_on_the_oldest_that_they_are_for(runner: Runner) -> None:
    program = runner.script(
        "import profharness_mark as mark\nwith mark.range('x'):\n    mark.step(items=3)\nprint('w')"
    )
    assert run(old_pythons.needed("3.8"), runner, program) == (0, "w\n", "")
    [hello] = (runner.folder / "hooks").glob("hello-*.json")
    assert json.loads(hello.read_text())["messages"] == []
    assert '"items": 3' in "".join(
        path.read_text() for path in runner.folder.rglob("*") if path.name.startswith("steps-")
    )


def a_run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = ("run", "--telemetry", "off", "-o", folder / "run", "--", *command)
    return subprocess.run(
        [sys.executable, "-m", "profharness", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_takes_a_command_of_an_old_python(tmp_path: Path) -> None:
    done = a_run(tmp_path, old_pythons.needed("3.6"), "-c", PROGRAM)
    assert done.stdout.startswith("(3, 6)\n"), done.stderr
    assert done.returncode == 3


@pytest.mark.parametrize(
    "complaint",
    [
        "SyntaxError: future feature annotations is not defined",
        "ImportError: cannot import name 'metadata' from 'importlib'",
    ],
)
def test_an_interpreter_too_old_for_our_programs_is_left_to_the_command(
    tmp_path: Path, complaint: str
) -> None:
    """A stand-in for machines that have no such Python."""
    old = tmp_path / "python3"
    old.write_text(
        f'#!/bin/sh\ncase "$1" in *probe.py) echo "{complaint}" >&2; exit 1;; esac\n'
        'echo "its own: $*"; exit 3\n'
    )
    old.chmod(0o755)
    done = a_run(tmp_path, str(old), "job.py")
    assert done.stdout.startswith("its own: job.py\n"), done.stderr
    assert done.returncode == 3
    words = ("run", "--python", str(old), "--batch-sizes", "1", "-o", str(tmp_path / "scan"))
    scan = subprocess.run(
        [sys.executable, "-m", "profharness", *words], capture_output=True, text=True, check=False
    )
    assert scan.returncode == 3
    assert f"{old} is older than Python 3.8" in scan.stderr
    assert not (tmp_path / "scan").exists()
