"""The watch over processes that use a framework without our hooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from profharness.findings import Finding
from profharness.supervise import hook_reports
from profharness.supervise.hook_reports import Observer, _command_line


def waiting(*words: str | bytes) -> subprocess.Popen[bytes]:
    """A shell that waits for a line which never comes, with these words on its command line."""
    argv = [b"sh", b"-c", b"echo; read line", *map(os.fsencode, words)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_command_line_is_readable_whatever_its_bytes_and_holds_no_secret() -> None:
    process = waiting("", "--token", "hf_" + "a" * 34, b"caf\xe9.py")
    try:
        line = _command_line(psutil.Process(process.pid))
    finally:
        process.kill()
        process.wait()
    assert line == "sh -c echo; read line --token [removed by profharness] caf\ufffd.py"


def test_one_that_ended_has_no_command_line() -> None:
    process = waiting()
    seen = psutil.Process(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert _command_line(seen) == "ended"  # nobody has waited for it yet
    process.wait()
    assert _command_line(seen) == "ended"


def test_a_framework_without_a_hook_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_reports, "_LIBRARIES", (("shell", "/libc"),))
    monkeypatch.setattr(hook_reports, "EVERY_S", 0.0)
    process = waiting("train.py")
    found: list[Finding] = []
    try:
        observer = Observer(tmp_path)
        observer.follow(process.pid)
        observer.look()
    finally:
        process.kill()
        process.wait()
    observer.look()
    observer.report(found.append)
    assert [one.id for one in found] == ["hook-not-loaded"]
    assert f"process {process.pid} (" in found[0].message
    assert "train.py) used shell" in found[0].message


FORKS = """
import os, sys
child = os.fork()
if not child:
    sys.stdin.readline()
    os.execvp("sh", ["sh", "-c", "echo; read line"])
print(child, flush=True)
os.wait()
"""


def test_a_fork_is_judged_once_it_runs_its_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it calls exec a child has its parent's libraries mapped."""
    monkeypatch.setattr(hook_reports, "_LIBRARIES", (("Python", "python3"), ("shell", "/libc")))
    monkeypatch.setattr(hook_reports, "EVERY_S", 0.0)
    found: list[Finding] = []
    with subprocess.Popen(
        [sys.executable, "-S", "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        child = int(process.stdout.readline())
        observer = Observer(tmp_path)
        observer.follow(process.pid)
        observer.look()
        assert set(observer._seen) == {process.pid}
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"\n"
        observer.look()
        process.stdin.close()
    observer.report(found.append)
    assert sorted(one.figures["pid"] for one in found) == sorted([process.pid, child])
    assert f"process {child} (sh -c echo; read line) used shell" in " ".join(
        one.message for one in found
    )
