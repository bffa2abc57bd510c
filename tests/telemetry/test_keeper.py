"""What a killed harness leaves behind: the sampler's keeper ends it within five seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import gone
from tests.telemetry.running import Sampler, wait_for

# deaf to every signal that can be ignored; its child lies in another group, without our variables
DEAF = """
import os, pathlib, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, signal.SIG_IGN)
if len(sys.argv) > 1:
    child = subprocess.Popen([sys.executable, "-S", "-c", sys.stdin.read()], env={}, process_group=0)
    pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""
HANGING = """
import ctypes, sys
from profharness.telemetry.keeper import Keeper
keeper = Keeper(int(sys.argv[1]))
print(flush=True)
ctypes.CDLL(None).sleep(600)
"""


@contextmanager
def deaf(told: Path, **env: str) -> Iterator[tuple[int, int]]:
    """The process and its child."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", DEAF, str(told)],
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdin is not None
    process.stdin.write(DEAF)
    process.stdin.close()
    child = int(wait_for(lambda: told.exists() and told.read_text(), "the child"))
    try:
        yield process.pid, child
    finally:
        for pid in (process.pid, child):
            if not gone(pid):
                os.kill(pid, 9)
        process.wait()


@pytest.mark.slow
def test_what_a_killed_harness_left_ends_within_five_seconds(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as harness:
        mark = {"PROFHARNESS_PARENT_PID": str(harness.pid)}
        with (
            deaf(tmp_path / "ours", **mark) as ours,
            deaf(tmp_path / "theirs") as theirs,
            Sampler(tmp_path, parent_pid=harness.pid) as sampler,
            subprocess.Popen(
                [sys.executable, "-c", HANGING, str(harness.pid)], stdout=subprocess.PIPE
            ) as hanging,
        ):
            wait_for((tmp_path / "node.ready.json").exists, "the sampler")
            assert hanging.stdout is not None
            hanging.stdout.readline()
            harness.kill()
            began = time.monotonic()
            left = (*ours, sampler.process.pid, hanging.pid)
            wait_for(lambda: all(gone(pid) for pid in left), "the end of ours", 30)
            took = time.monotonic() - began
            assert not any(gone(pid) for pid in theirs)  # a user's own
            assert sampler.process.wait() == 0
            assert (tmp_path / "node.done.json").exists()
            assert took < 5 or os.getloadavg()[0] > 4  # on a crowded machine it may take longer


def test_a_harness_that_is_gone_already_leaves_nothing_to_wait_for(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with Sampler(tmp_path, parent_pid=ended.pid) as sampler:
        assert sampler.process.wait(30) == 0
