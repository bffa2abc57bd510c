"""A server of another's ends with the harness that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import gone

LEASH = Path(__file__).resolve().parents[2] / "wrappers" / "leash.py"
# starts the leash as the launcher does, in a group of its own, and says so
STARTER = (
    "import subprocess, sys, time\nsubprocess.Popen(sys.argv[1:], process_group=0)\n"
    "print('started', flush=True)\ntime.sleep(100)\n"
)
SERVER = (
    "import os, pathlib, signal, sys, time\n"
    "{before}pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\ntime.sleep(100)\n"
)
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
QUICK = (
    "import runpy, sys\nsys.path.insert(0, {folder!r})\nimport leash\nleash.GRACE_S = 0.2\n"
    "leash.main(sys.argv[1:])\n"
)


def until(what: object, condition: object) -> None:
    deadline = time.monotonic() + 90
    while not condition():  # type: ignore[operator]  # a plain function
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("deaf", [False, True])
def test_the_command_ends_when_its_starter_is_killed(tmp_path: Path, *, deaf: bool) -> None:
    note = tmp_path / "pid"
    leash = (
        [sys.executable, "-c", QUICK.format(folder=str(LEASH.parent))]
        if deaf
        else [sys.executable, str(LEASH)]
    )
    server = [sys.executable, "-c", SERVER.format(before=DEAF if deaf else ""), str(note)]
    starter = subprocess.Popen([sys.executable, "-c", STARTER, *leash, "--", *server])
    try:
        until("the server's start", lambda: note.exists() and note.read_text())
        pid = int(note.read_text())
        assert not gone(pid)
        starter.kill()
        starter.wait()
        until("the server's end", lambda: gone(pid))
    finally:
        starter.kill()
        starter.wait()


@pytest.mark.parametrize(
    ("program", "status"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL)],
)
def test_it_ends_as_its_command_did(program: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(LEASH), "--", sys.executable, "-c", program],
        check=False,
        timeout=180,
    )
    assert done.returncode == status


def test_a_signal_to_the_group_reaches_the_command_once(tmp_path: Path) -> None:
    counting = (
        "import pathlib, signal, sys, time\nseen = []\nsignal.signal(signal.SIGTERM, "
        "lambda *_: seen.append(1))\n"
        "pathlib.Path(sys.argv[1]).write_text('up')\nwhile not seen: time.sleep(0.01)\n"
        "time.sleep(0.3)\nsys.exit(40 + len(seen))\n"
    )
    note = tmp_path / "up"
    process = subprocess.Popen(
        [sys.executable, str(LEASH), "--", sys.executable, "-c", counting, str(note)],
        process_group=0,
    )
    until("its start", note.exists)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(30) == 41


def test_a_command_of_a_background_job_still_ends_at_an_interrupt(tmp_path: Path) -> None:
    """A shell that runs a script starts what stands before `&` with SIGINT ignored."""
    up = tmp_path / "up"
    program = (
        "import pathlib, sys, time\ntry:\n    pathlib.Path(sys.argv[1]).touch()\n"
        "    time.sleep(100)\nexcept KeyboardInterrupt:\n    sys.exit(42)\n"
    )
    command = [sys.executable, "-S", str(LEASH), "--", sys.executable, "-c", program, str(up)]
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    with subprocess.Popen(ignoring, process_group=0) as leash:
        until("the command's start", up.exists)
        os.killpg(leash.pid, signal.SIGINT)
        try:
            assert leash.wait(60) == 42
        finally:
            if leash.poll() is None:
                os.killpg(leash.pid, signal.SIGKILL)
