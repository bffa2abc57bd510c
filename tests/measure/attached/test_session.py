"""One attachment with small tools: what ends it, and that everything else is left alone."""

from __future__ import annotations

import dataclasses
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.launchers.command import Command
from profharness.layers.contract import Attachment
from profharness.measure.attached import session
from profharness.measure.attached.session import Order
from profharness.measure.attached.target import Target, goes_on, look
from tests.processes import gone


@pytest.fixture
def target() -> Iterator[Target]:
    """A process that waits, in a group of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0
    )
    found = look(process.pid)
    yield found
    assert goes_on(found)
    process.communicate(b"\n")
    assert process.returncode == 0  # no signal ended it


def order(folder: Path, target: Target, script: str, **changes: object) -> Order:
    """A tool that is a shell script, told by a line to let go."""
    tool = folder / "tool"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    facts = {"timed": False, "attached": "ready", **changes}
    attachment = Attachment(Command((str(tool),)), **facts)  # type: ignore[arg-type]  # by name
    return Order(target, 50_000_000, attachment, folder / "out", folder / "log", 5.0)


def nothing() -> None:
    """A poll that has nothing to do."""


def test_the_line_ends_it_and_the_time_counts_from_the_tools_word(
    tmp_path: Path, target: Target
) -> None:
    script = 'sleep 0.3; echo ready; read line; echo "[$line]"; touch out/done'
    (tmp_path / "out").mkdir()
    asked = order(tmp_path, target, f"cd {tmp_path}; {script}")
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    ended = session.run(asked, nothing)
    assert (ended.outcome.exit_status, ended.hung, ended.left) == (0, False, 0)
    assert asked.log.read_text() == "ready\n[]\n"
    assert 0.05e9 <= ended.lasted_ns == ended.outcome.end_boot_ns - ended.outcome.start_boot_ns
    assert ended.outcome.start_boot_ns - before >= 0.3e9
    assert ended.target_goes_on


def test_files_that_come_behind_the_tools_end_are_waited_for(
    tmp_path: Path, target: Target
) -> None:
    late = f"echo ready; read line; (sleep 0.4; echo all > {tmp_path}/out/file) &"
    (tmp_path / "out").mkdir()
    session.run(order(tmp_path, target, late, late=True), nothing)
    assert (tmp_path / "out" / "file").read_text() == "all\n"


def test_a_failure_of_ours_lets_go_as_well(tmp_path: Path, target: Target) -> None:
    pids: list[int] = []

    def fail() -> None:
        if (tmp_path / "pid").exists() and (text := (tmp_path / "pid").read_text()):
            pids.append(int(text))
            raise OSError("the disk is full")

    script = f"echo $$ > {tmp_path}/pid; read line; touch {tmp_path}/let-go"
    with pytest.raises(OSError, match="the disk is full"):
        session.run(order(tmp_path, target, script), fail)
    assert (tmp_path / "let-go").exists()
    assert gone(pids[0])


def test_each_further_signal_takes_the_next_step(tmp_path: Path, target: Target) -> None:
    """A tool that listens neither to the line nor to SIGINT ends by SIGTERM."""
    script = "trap '' INT; echo ready; read line; echo told; while :; do sleep 0.05; done"
    asked = order(tmp_path, target, script)
    long = Order(target, 10**12, asked.attachment, asked.folder, asked.log, 300.0)

    def press() -> None:
        for _ in range(3):
            until = time.monotonic() + 10
            while "ready" not in _text(asked.log) and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    thread = threading.Thread(target=press)
    thread.start()
    ended = session.run(long, nothing)
    thread.join()
    assert ended.outcome.forwarded == (signal.SIGINT,) * 3
    assert (ended.outcome.exit_status, ended.hung) == (128 + signal.SIGTERM, True)
    assert "told" in _text(asked.log)


@pytest.mark.parametrize("holds", [True, False])
def test_a_tool_that_waits_for_a_line_gets_no_signal_while_it_holds_the_process(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch, *, holds: bool
) -> None:
    """SIGINT would end such a tool as well, with its work in the process half done."""
    script = f"echo $$ > {tmp_path}/pid; echo ready; while :; do sleep 0.05; done"
    asked = dataclasses.replace(order(tmp_path, target, script), limit_s=0.2)
    monkeypatch.setattr(
        session, "tracer_of", lambda _: int(_text(tmp_path / "pid")) if holds else 0
    )
    ended = session.run(asked, nothing)
    pid = int(_text(tmp_path / "pid"))
    try:
        assert ended.hung
        assert (ended.left, gone(pid)) == ((pid, False) if holds else (0, True))
    finally:
        if holds:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_the_time_passes_without_a_tool(tmp_path: Path, target: Target) -> None:
    polls: list[int] = []
    ended = session.run(
        Order(target, 100_000_000, None, tmp_path, tmp_path / "log"), lambda: polls.append(1)
    )
    assert 0.1e9 <= ended.lasted_ns < 5e9
    assert len(polls) > 1
    assert ended.outcome.exit_status == 0


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
