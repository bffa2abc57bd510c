"""The ranks of a node take one answer: each rank is a process of its own, as with srun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import started

ASK = """
import json, sys
from pathlib import Path
from profharness.errors import Unavailable
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.measure.meeting.asking import AskedOnce
from profharness.measure.meeting.board import Board
from profharness.measure.ranks import RankInfo

rank, program = RankInfo(int(sys.argv[1]), 3, int(sys.argv[1]), "job"), sys.argv[2]
asked = AskedOnce(LocalLauncher(), Board.at(Path("run").absolute(), rank, named=False), rank)
try:
    print(json.dumps(asked.capture(Command((program,)), 20.0).decode()), flush=True)
except Unavailable as error:
    print(json.dumps([error.message, error.hint]), flush=True)
sys.stdin.read()
"""


def _ranks(folder: Path, program: str, ranks: tuple[int, ...]) -> list[object]:
    """What the ranks were answered. They live until all have their answers."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, str(rank), program],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(started.ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for rank in ranks
    ]
    answers = []
    for process in processes:
        assert process.stdout is not None
        answers.append(json.loads(process.stdout.readline()))
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    return answers


def _program(folder: Path, ends: str) -> str:
    """Its answer has the number of the process that gave it."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho started >> {folder}/log\n{ends}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("ends", ["echo $$", "echo why $$ >&2; exit 3"])
def test_one_of_the_ranks_asks(tmp_path: Path, ends: str) -> None:
    """Of an answer, and of a failure."""
    first, *others = _ranks(tmp_path, _program(tmp_path, ends), (0, 1, 2))
    assert others == [first, first]
    assert (tmp_path / "log").read_text().split() == ["started"]


@pytest.mark.slow
def test_without_a_leader_each_asks_for_itself(tmp_path: Path) -> None:
    first, second = _ranks(tmp_path, _program(tmp_path, "echo $$"), (1, 2))
    assert first != second
