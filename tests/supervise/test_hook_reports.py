"""The watch over processes that use a framework without our hooks."""

from __future__ import annotations

import os
import subprocess
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
