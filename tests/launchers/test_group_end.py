"""After a signal the whole group ends: within its grace time, at a second signal, and also where a
script around the tool swallows signals or ends before it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profharness.launchers import Job, Outcome, group_end
from profharness.launchers.between import Terminated, ended_by_signals
from profharness.launchers.command import Command
from profharness.launchers.group_end import Signals
from profharness.launchers.local import LocalLauncher
from tests.processes import gone

# deaf to signals, with a child in a session of its own; tells both numbers
DEAF = """
import os, pathlib, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
pathlib.Path(sys.argv[1] + ".part").write_text(f"{os.getpid()} {child.pid}")
os.replace(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
STAYS = 'trap : TERM INT; "$@" & wait; wait; wait; wait'
LEAVES = 'trap "exit 3" TERM INT; "$@" & wait'


class Tried:
    """One run of a deaf program inside of a shell script, with signals to the harness."""

    def __init__(self, folder: Path, script: str, *signals: int) -> None:
        self.told = folder / "told"
        self.command = Command(
            ("sh", "-c", script, "sh", sys.executable, "-S", "-c", DEAF, str(self.told))
        )
        self._signals = list(signals)
        self._next = 0.0

    def poll(self) -> None:
        """Send the signals, the first once the program runs, each a moment after the last."""
        if not self._signals or not self.told.exists() or time.monotonic() < self._next:
            return
        os.kill(os.getpid(), self._signals.pop(0))
        self._next = time.monotonic() + 0.15

    def run(self, **settings: float | bool | None) -> Outcome:
        job = Job(self.command, log=self.told.with_name("log"), **settings)  # type: ignore[arg-type]  by name
        return LocalLauncher().run(job, lambda _: None, self.poll)

    @property
    def left(self) -> list[str]:
        """The processes of the program that still run."""
        deadline = time.monotonic() + 5
        pids = self.told.read_text().split()
        while time.monotonic() < deadline and not all(gone(pid) for pid in pids):
            time.sleep(0.01)
        left = [pid for pid in pids if not gone(pid)]
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        return left


@pytest.mark.parametrize("is_command", [False, True])
def test_the_grace_time_ends_a_script_that_swallows_the_signal(
    tmp_path: Path, is_command: bool
) -> None:
    tried = Tried(tmp_path, STAYS, signal.SIGTERM)
    outcome = tried.run(grace_s=0.3, is_command=is_command)
    assert (outcome.exit_status, outcome.forwarded) == (128 + signal.SIGKILL, (signal.SIGTERM,))
    assert tried.left == []


def test_a_second_signal_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_end, "AGAIN_S", 0.1)
    tried = Tried(tmp_path, STAYS, signal.SIGINT, signal.SIGTERM)
    began = time.monotonic()
    assert tried.run(grace_s=300.0, is_command=True).exit_status == 128 + signal.SIGKILL
    assert time.monotonic() - began < 60
    assert tried.left == []


def test_what_a_script_leaves_behind_after_a_signal_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_end, "STRAGGLERS_S", 0.2)
    tried = Tried(tmp_path, LEAVES, signal.SIGTERM)
    assert tried.run(grace_s=300.0, is_command=True).exit_status == 3
    assert tried.left == []


def test_what_a_command_leaves_running_at_its_own_end_is_its_own(tmp_path: Path) -> None:
    told = tmp_path / "told"
    words = 'sleep 600 & echo $! > "$0"; exit 4'
    job = Job(
        Command(("sh", "-c", words, str(told))), log=tmp_path / "log", grace_s=9.0, is_command=True
    )
    assert LocalLauncher().run(job, lambda _: None, lambda: None).exit_status == 4
    pid = told.read_text().strip()
    assert not gone(pid)
    os.kill(int(pid), signal.SIGKILL)


def test_a_capture_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = Command(("sh", "-c", 'sleep 600 & echo $! > "$0"; wait', str(told)))
    with pytest.raises(Exception, match="timed out"):
        LocalLauncher().capture(command, 0.5)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not gone(told.read_text().strip()):
        time.sleep(0.01)
    assert gone(told.read_text().strip())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_start_reaches_what_is_started(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Start(subprocess.Popen[bytes]):
        """It has started, and whoever started it does not know that yet."""

        def __init__(self, *words: Any, **settings: Any) -> None:
            super().__init__(*words, **settings)
            begun.append(self)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Start)
    job = Job(Command(("sleep", "600")), grace_s=60, is_command=True)
    try:
        with ended_by_signals():
            ended = LocalLauncher().run(job, lambda _: None, lambda: None)
        assert (ended.exit_status, ended.forwarded) == (128 + number, (number,))
    finally:
        begun[0].kill()
        begun[0].wait()


def test_a_signal_in_a_start_that_fails_ends_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        raise OSError(8, "Exec format error")

    monkeypatch.setattr(subprocess, "Popen", failing)
    with ended_by_signals(), pytest.raises(Terminated):
        LocalLauncher().run(Job(Command(("sleep", "600"))), lambda _: None, lambda: None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_asked_ends_with_the_harness_that_asks(tmp_path: Path, number: int) -> None:
    told = tmp_path / "told"
    asking = (
        "import sys\nfrom profharness.launchers.command import Command\n"
        "from profharness.launchers.local import LocalLauncher\n"
        "LocalLauncher().capture(Command(('sh', '-c', sys.argv[1], sys.argv[2])), 600)\n"
    )
    words = 'sleep 600 & echo $! > "$0.part"; mv "$0.part" "$0"; wait'
    harness = subprocess.Popen([sys.executable, "-c", asking, words, str(told)])
    try:
        until(told.exists)
        asked = told.read_text().strip()
        assert not gone(asked)
        harness.send_signal(number)
        assert harness.wait() == -number
        until(lambda: gone(asked))
    finally:
        harness.kill()
        harness.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def at(*moments: tuple[float, int]) -> Callable[[pytest.MonkeyPatch, Signals], bool]:
    """Whether the job is over once the signals came at these times, in s."""

    def over(patch: pytest.MonkeyPatch, signals: Signals) -> bool:
        for moment, number in moments:
            patch.setattr(time, "monotonic", lambda moment=moment: 100 + moment)
            signals.add(number)
        return signals.is_over()

    return over


TERM, INT, USR1 = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1


@pytest.mark.parametrize(
    ("came", "own_interrupts", "over"),
    [
        (at((0, TERM)), False, False),
        (at((0, TERM), (0.1, TERM)), False, False),  # `timeout` tells the process and its group
        (at((0, TERM), (1.5, TERM)), False, True),
        (at((0, INT), (1.5, INT)), False, True),
        (at((0, INT), (1.5, INT), (3, INT)), True, False),  # an interactive program's own
        (at((0, INT), (1.5, TERM)), True, False),
        (at((0, TERM), (1.5, INT)), True, True),
        (at((0, USR1), (2, USR1), (4, TERM)), False, False),
    ],
)
def test_which_signals_end_a_job(
    came: Callable[[pytest.MonkeyPatch, Signals], bool],
    own_interrupts: bool,
    over: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        assert came(patch, Signals(None, own_interrupts=own_interrupts)) is over


def test_no_signal_is_waited_for_beside_the_main_thread(tmp_path: Path) -> None:
    ended: list[Outcome] = []

    def run() -> None:
        job = Job(Command(("true",)), log=tmp_path / "log", grace_s=1.0)
        ended.append(LocalLauncher().run(job, lambda _: None, lambda: None))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert [one.exit_status for one in ended] == [0]
