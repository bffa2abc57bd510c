"""Launchers: start a command, stream its output, pass signals on, report how it ended. They know no
layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from profharness.launchers.command import Command
from profharness.rundir.lost import LostFile


@dataclass(frozen=True)
class Job:
    """What to start. Without `log` the process inherits stdin, stdout and stderr untouched.

    With `log`, stdin is empty and both outputs go to that file; `echo_stdout` instead keeps stdin,
    copies stdout to the log and to the harness's stderr, and leaves stderr alone. `stderr_log` gets
    a copy of what the process says on stderr, which still goes to the harness's own. `grace_s` is
    how long the process may take to end after a forwarded SIGTERM or SIGINT before its group is
    killed; None waits for ever. A second signal kills the group at once. `is_command`: a user's own
    program, which keeps what it left running when it ends by itself, and to which Ctrl-C on a
    terminal says what it likes. `overdue` is asked at every poll; once it says yes, the process and
    all that descend from it are killed.
    """

    command: Command
    log: Path | None = None
    echo_stdout: bool = False
    grace_s: float | None = None
    stderr_log: Path | None = None
    overdue: Callable[[], bool] | None = None
    is_command: bool = False


@dataclass(frozen=True)
class Outcome:
    """How it ended: the shell's convention for `exit_status` (128 + n for signal n). Times are
    CLOCK_BOOTTIME ns.

    `overdue`: it was killed because the job's `overdue` said so. `by_signal`: it died of a signal,
    rather than exiting with a status that looks like one. `lost`: what could not be written
    meanwhile.
    """

    exit_status: int
    pid: int
    start_boot_ns: int
    end_boot_ns: int
    forwarded: tuple[int, ...] = ()
    overdue: bool = False
    by_signal: bool = False
    lost: tuple[LostFile, ...] = ()

    @property
    def interrupted(self) -> bool:
        """Whether a signal to the harness was passed on."""
        return bool(self.forwarded)


class Surrounding(Protocol):
    """What every command is started in, such as a container."""

    def around(self, command: Command) -> Command:
        """The command as this host starts it."""

    def renamed(self, old: Path, new: Path) -> Surrounding:
        """The same, with the folder `new` in place of `old`."""


class Launcher(Protocol):
    """Runs one job to its end. `started` gets the pid; `poll` is called about every 50 ms
    meanwhile.
    """

    name: str

    def composed(self, command: Command) -> Command:
        """The command as it is really started, in the container if there is one."""

    def renamed(self, old: Path, new: Path) -> Launcher:
        """The same launcher, whose container sees the folder `new` in place of `old`."""

    def run(self, job: Job, started: Callable[[int], None], poll: Callable[[], None]) -> Outcome:
        """Raises Unavailable when the program cannot be started."""

    def capture(self, command: Command, timeout_s: float) -> bytes:
        """The command's stdout; for short questions such as the probe. Raises Unavailable when it
        fails.
        """


def describe_exit(status: int) -> str:
    """`exited 3`, or `was killed by SIGSEGV`, for messages."""
    import signal

    if status > 128 and status - 128 in signal.valid_signals():
        return f"was killed by {signal.Signals(status - 128).name}"
    return f"exited {status}"
