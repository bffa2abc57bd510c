from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from profharness.errors import Unavailable
from profharness.launchers import Job, describe_exit, slurm
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher


def run(
    code: str, tmp_path: Path, poll: object = None, grace_s: float | None = 5.0
) -> tuple[int, str, list[int]]:
    pids: list[int] = []
    log = tmp_path / "log"
    outcome = LocalLauncher().run(
        Job(Command((sys.executable, "-c", textwrap.dedent(code))), log=log, grace_s=grace_s),
        pids.append,
        poll if callable(poll) else lambda: None,
    )
    return outcome.exit_status, log.read_text(), pids


def test_status_and_output(tmp_path: Path) -> None:
    status, text, pids = run(
        "import os, sys; print(os.getpid()); sys.stderr.write('err'); sys.exit(7)", tmp_path
    )
    assert status == 7
    assert str(pids[0]) in text
    assert "err" in text


def test_a_signal_death_is_128_plus_n(tmp_path: Path) -> None:
    status, _, _ = run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    assert status == 128 + signal.SIGSEGV
    assert describe_exit(status) == "was killed by SIGSEGV"
    assert describe_exit(3) == "exited 3"


def test_a_missing_program_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no-such-program"):
        LocalLauncher().run(Job(Command(("no-such-program",))), lambda _: None, lambda: None)
    with pytest.raises(Unavailable, match="no-such-program"):
        LocalLauncher().capture(Command(("no-such-program",)), 5)


def test_a_signal_to_the_harness_is_passed_on(tmp_path: Path) -> None:
    code = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
        print('ready', flush=True)
        time.sleep(60)
    """
    sent: list[int] = []

    def poll() -> None:
        if not sent and "ready" in (tmp_path / "log").read_text():
            sent.append(1)
            os.kill(os.getpid(), signal.SIGTERM)

    status, _, _ = run(code, tmp_path, poll)
    assert status == 42


def test_a_worker_that_ignores_the_signal_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    code = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('ready', flush=True)
        time.sleep(60)
    """
    sent: list[int] = []

    def poll() -> None:
        if not sent and "ready" in (tmp_path / "log").read_text():
            sent.append(1)
            os.kill(os.getpid(), signal.SIGTERM)

    status, _, _ = run(code, tmp_path, poll, grace_s=0.2)
    assert status == 128 + signal.SIGKILL


def test_output_of_a_command_is_untouched_without_a_log() -> None:
    code = textwrap.dedent("""
        import sys
        from profharness.launchers.command import Command
        from profharness.launchers import Job
        from profharness.launchers.local import LocalLauncher
        words = "import sys; sys.stdout.write('out' + sys.stdin.read()); sys.stderr.write('err'); sys.exit(5)"
        sys.exit(LocalLauncher().run(Job(Command((sys.executable, '-c', words))), lambda _: None, lambda: None).exit_status)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code], input="IN", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, "outIN", "err")


def test_the_tasks_of_slurm_run_what_was_planned() -> None:
    """What asks for a plan alone is left out, in both spellings, and never of the command."""
    plan = ("--dry-run", "--for-node", "gfx90a", "--rocm-version=6.4")
    line = ("python", "-m", "profharness", "run", *plan, "--ranks", "2", "--", "p", "--dry-run")
    assert slurm.words(line, 2, ("--gpus=1",), is_command=True) == (
        *("srun", "--ntasks=2", "--gpus=1", "python", "-m", "profharness", "run"),
        *("--ranks", "2", "--launcher", "task", "--ranks", "1", "--", "p", "--dry-run"),
    )
