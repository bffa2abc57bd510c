"""Processes that are started before there is work for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.node import cores, spare
from profharness.node.cores import READING, helpers_for, reading_by

ECHOES = "tests.fakes.stand_in_work:echo"


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_what_was_started_early_is_taken_and_works() -> None:
    with spare.started_early(ECHOES, 2):
        one, two = spare.take(ECHOES), spare.take(ECHOES)
        try:
            assert one.pid != two.pid
            for process in (one, two):
                process.questions.send(("word", 7))
                assert process.answers.recv() == (("word", 7), process.pid)
                assert os.getpgid(process.pid) == process.pid, "Ctrl-C does not reach it"
        finally:
            one.close()
            two.close()
    assert not lives(one.pid)
    assert not lives(two.pid)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of all that are started."""
    found: list[int] = []
    first = spare.SpareProcess.__init__

    def noted(self: spare.SpareProcess, work: str) -> None:
        first(self, work)
        found.append(self.pid)

    monkeypatch.setattr(spare.SpareProcess, "__init__", noted)
    return found


def test_what_was_not_taken_ends_with_the_block(started: list[int]) -> None:
    def fails() -> None:
        with spare.started_early(ECHOES, 2):
            assert len(started) == 2
            assert all(map(lives, started))
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fails()
    assert not any(map(lives, started))


def test_only_a_process_for_the_same_work_is_taken(started: list[int]) -> None:
    with spare.started_early(ECHOES, 1):
        other = spare.take("tests.fakes.stand_in_work:wait")
        same = spare.take(ECHOES)
        other.close()
        same.close()
    assert [same.pid, other.pid] == started, "the first was started early, the second when asked"


def test_one_that_cannot_do_its_work_says_so_by_its_end() -> None:
    broken = spare.take("tests.fakes.stand_in_work:no_such_function")
    try:
        with pytest.raises(EOFError):
            broken.answers.recv()
    finally:
        broken.close()


def test_no_room_for_a_process_is_no_error_before_one_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: object, **__: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(spare.subprocess, "Popen", none)
    with spare.started_early(ECHOES, 3), pytest.raises(BlockingIOError):
        spare.take(ECHOES)


def test_it_ends_when_the_process_that_started_it_is_killed() -> None:
    program = (
        "import os, signal\n"
        "from profharness.node import spare\n"
        f"process = spare.take({ECHOES!r})\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 30
    while lives(pid) and "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("head", "helpers"),
    [(b'{"schemaVersion": 1', 3), (b" [\n", 3), (b"\x1f\x8b\x08", 0), (b"PK\x03\x04", 0)],
)
def test_helpers_are_for_one_large_file_of_plain_json(
    tmp_path: Path, head: bytes, helpers: int
) -> None:
    path = tmp_path / "t.json"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 30)  # takes no room
    with reading_by(4):
        assert helpers_for([path]) == helpers
        assert helpers_for([path, path]) == 0, "each is read by another process"
        assert helpers_for([tmp_path, tmp_path / "missing.json"]) == 0
        assert helpers_for([tmp_path]) == helpers_for([tmp_path / "missing.json"]) == 0
    with reading_by(1):
        assert helpers_for([path]) == 0
    small = tmp_path / "small.json"
    small.write_bytes(head)
    with reading_by(None):
        assert helpers_for([small]) == 0


def test_the_work_that_cores_names_is_there() -> None:
    module, name = READING.split(":")
    __import__(module)
    assert callable(getattr(sys.modules[module], name))
    assert cores.processes_for(Path(__file__)) == 1
