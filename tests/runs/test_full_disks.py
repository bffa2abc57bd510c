"""A run folder that takes no more while a workload runs: the workload goes on to its own end, with
its own status, what was measured stays, and one finding says what is missing.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from tests.fakes.disk import Disk

# says that it began, then waits for the word to go on, then says much more than a pipe holds
WORKLOAD = """
import pathlib, sys, time
began, go = map(pathlib.Path, sys.argv[1:])
print("first", flush=True)
began.touch()
end = time.monotonic() + 60
while not go.exists() and time.monotonic() < end:
    time.sleep(0.01)
for number in range(4000):
    print("x" * 60, flush=number % 500 == 0)
time.sleep(0.3)
print("last", flush=True)
sys.exit(7)
"""


class Started:
    """A command of a run whose folder will take no more."""

    def __init__(self, tmp_path: Path, **env: str) -> None:
        self.root, self.began, self.go = (tmp_path / name for name in ("run", "began", "go"))
        words = ["run", "--json", "--telemetry", "cpu", "-o", str(self.root), "--"]
        command = [sys.executable, "-c", WORKLOAD, str(self.began), str(self.go)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "profharness", *words, *command],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not self.first_is_kept():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)

    def first_is_kept(self) -> bool:
        """Whether the workload's first line stands in its log: the harness writes it a moment
        after the workload said it, and what comes after that moment would decide the test.
        """
        logs = (self.root / "points").rglob("stdout.log")
        return self.began.exists() and any(log.read_text() == "first\n" for log in logs)

    def ended(self) -> tuple[int, str]:
        """The status, and what was said on stderr; the workload's stdout goes there."""
        self.go.touch()
        _, said = self.process.communicate(timeout=60)
        assert said.count("x" * 60) == 4000
        assert "last\n" in said
        assert "Traceback" not in said
        assert "itself failed" not in said
        return self.process.returncode, said

    def manifest(self) -> Manifest:
        return RunDir.open(self.root).read_manifest()


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        errno.ENOSPC,
        *(
            pytest.param(number, marks=pytest.mark.thorough)
            for number in (errno.EDQUOT, errno.EROFS, errno.EIO)
        ),
    ],
)
def test_a_disk_that_takes_no_more_ends_no_workload(tmp_path: Path, number: int) -> None:
    disk = Disk(tmp_path / "run", number, tmp_path)
    run = Started(tmp_path, **disk.env)
    before = (run.root / "manifest.json").read_bytes()
    disk.switch.touch()
    status, said = run.ended()
    assert status == 7
    assert os.strerror(number) in said
    assert (run.root / "manifest.json").read_bytes() == before  # whole, as it was
    assert msgspec.json.decode(before)["state"] == "running"


@pytest.mark.slow
def test_room_that_comes_back_lets_the_run_say_what_is_missing(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "run" / "points", errno.ENOSPC, tmp_path)  # the log alone
    run = Started(tmp_path, **disk.env)
    disk.switch.touch()
    assert run.ended()[0] == 7
    made = run.manifest()
    assert (made.state, made.exit_status, made.passes[0].exit_status) == ("done", 7, 7)
    (lost,) = [found for found in made.findings if found.id == "output-lost"]
    assert os.strerror(errno.ENOSPC) in lost.message
    assert "stdout.log" in lost.message
    (log,) = (run.root / "points").rglob("stdout.log")
    assert log.read_text() == "first\n"  # what was written stays


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_ends_no_workload(tmp_path: Path) -> None:
    run = Started(tmp_path)
    kept = 40_000
    _, hard = resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (kept, hard))
    assert run.ended()[0] == 7
    (lost,) = [found for found in run.manifest().findings if found.id == "output-lost"]
    assert os.strerror(errno.EFBIG) in lost.message
    (log,) = (run.root / "points").rglob("stdout.log")
    assert log.stat().st_size == kept


@pytest.mark.slow
def test_a_run_folder_that_vanishes_ends_no_workload(tmp_path: Path) -> None:
    run = Started(tmp_path)
    shutil.rmtree(run.root)
    assert run.ended()[0] == 7
    assert run.manifest().exit_status == 7  # the record is there again
