"""Completion as bash asks for it: through the function that `--show-completion` prints, in a real
shell.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an executable `profharness`, and the shell function of its completion."""
    place = tmp_path_factory.mktemp("bin")
    program = place / "profharness"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m profharness "$@"\n')
    program.chmod(0o755)
    script = subprocess.run(
        [str(program)],
        env={**os.environ, "_PROFHARNESS_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "complete -o default -F _profharness_completion profharness" in script
    (place / "completion.sh").write_text(script)
    return place


def completed(folder: Path, line: str) -> list[str]:
    """What bash offers for the last word of the line."""
    words = line.split(" ")
    script = (
        f"source {folder}/completion.sh; COMP_WORDS=({' '.join(w or chr(34) * 2 for w in words)}); "
        f"COMP_CWORD={len(words) - 1}; _profharness_completion profharness; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("profharness me", ["merge", "metrics"]),
        ("profharness run --ba", ["--backend", "--batch-sizes", "--bare"]),
        ("profharness run --profile rocprofv", ["rocprofv3"]),
        ("profharness run --profile torch,amd", ["torch,amd-log"]),
        ("profharness run multi", ["multi-process"]),
        ("profharness run --order ", ["asc", "desc", "random"]),
        ("profharness run --trials 5 --pin n", ["numa", "none"]),
        ("profharness hotspots --by o", ["op"]),
        ("profharness help sat", ["saturation"]),
        ("profharness run -- tra", []),
    ],
)
def test_bash_completes_commands_options_and_values(
    folder: Path, line: str, offered: list[str]
) -> None:
    assert completed(folder, line) == offered


def test_installing_writes_into_the_shells_own_files(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m profharness --install-completion; exit $?"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "completion installed in" in done.stdout
    assert (tmp_path / ".bash_completions" / "profharness.sh").is_file()
