"""The comparison of two checkouts' answers: a planted difference is found and named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ONLY = r"^wrong line/rnu$|^plan/command --profile torch$|^(merge|metrics)/generated --kernels 1 "
ALTERED = """#!/bin/sh
# runs the real interpreter, and puts another word into what it says
"{python}" "$@" > altered.out 2> altered.err
code=$?
sed 's/did you mean/perhaps/; s/"kernels": 1,/"kernels": 2,/' altered.out
sed 's/did you mean/perhaps/' altered.err >&2
[ -f merged.pftrace ] && printf '\\012\\002\\010\\001' >> merged.pftrace
exit $code
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


def compared(
    repository: Path, shared: Path, work: Path, *words: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, list[dict[str, str]]]]]:
    command = [
        sys.executable,
        str(repository / "benchmarks" / "compare_answers.py"),
        "--old",
        str(repository),
        "--new",
        str(repository),
        "--shared",
        str(shared),
        "--old-python",
        sys.executable,
        "--work",
        str(work),
        "--json",
        str(work / "result.json"),
        "--only",
        ONLY,
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done, json.loads((work / "result.json").read_text())


@pytest.mark.thorough  # the planted difference below is the only one that is found
def test_a_checkout_answers_like_itself(repository: Path, shared: Path, work: Path) -> None:
    done, result = compared(repository, shared, work, "--new-python", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {kind: list(answers.values()) for kind, answers in result.items()} == {
        "wrong line": [[]],
        "plan": [[]],
        "metrics": [[]],
        "merge": [[]],
    }
    assert [line.split() for line in done.stdout.splitlines()[-4:]][-1][-3:] == ["1", "1", "0"]


@pytest.mark.slow
def test_a_planted_difference_is_found_and_named(
    repository: Path, shared: Path, work: Path
) -> None:
    altered = work / "python"
    altered.write_text(ALTERED.format(python=sys.executable))
    altered.chmod(0o755)
    done, result = compared(repository, shared, work, "--new-python", str(altered))
    assert done.returncode == 1, done.stdout + done.stderr
    found = {
        kind: [one["part"] for answers in by_name.values() for one in answers]
        for kind, by_name in result.items()
    }
    assert found["wrong line"] == ["stderr 1"]
    assert found["metrics"] == ["stdout 1"]
    assert found["plan"] == []
    assert "merged.pftrace" in found["merge"]
    assert "wrong line/rnu: stderr 1 differs\n  old line 2:   did you mean" in done.stdout
    allowed, _ = compared(
        repository,
        shared,
        work,
        "--new-python",
        str(altered),
        "--allow",
        "metrics",
        "--allow",
        "merge",
        "--allow",
        "wrong line",
    )
    assert (allowed.returncode, "(allowed)" in allowed.stdout) == (0, True)


@pytest.mark.slow
def test_without_the_shared_files_their_kinds_are_left_out(
    repository: Path, tmp_path: Path
) -> None:
    done, result = compared(
        repository, tmp_path / "absent", tmp_path, "--new-python", sys.executable
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(result) == {"wrong line", "plan"}
    assert "recorded and generated files are left out" in done.stderr
