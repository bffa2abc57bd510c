"""The local launcher: a child process on this node.

On a terminal the child stays in the harness's process group, so that the terminal's own Ctrl-C
reaches it and reading the keyboard works; elsewhere it gets a group of its own and signals are
forwarded to that group.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO

from profharness.errors import Unavailable
from profharness.launchers import Job, Outcome, Surrounding
from profharness.launchers.command import Command
from profharness.launchers.process_tree import kill, leaves, tree

POLL_S = 0.05
# How long a tool may take to write its files once the processes that it waited for have been
# killed.
LAST_WORDS_S = 10.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class LocalLauncher:
    """Starts the command on this node and waits for it."""

    name = "local"

    def __init__(self, inside: Surrounding | None = None) -> None:
        self._inside = inside

    def composed(self, command: Command) -> Command:
        return command if self._inside is None else self._inside.around(command)

    def renamed(self, old: Path, new: Path) -> LocalLauncher:
        return self if self._inside is None else LocalLauncher(self._inside.renamed(old, new))

    def run(self, job: Job, started: Callable[[int], None], poll: Callable[[], None]) -> Outcome:
        """Start the job, pass signals on until it ends, and say how it ended.

        Times are CLOCK_BOOTTIME ns. Raises Unavailable when the program cannot be started.
        """
        own_group = job.log is not None or not sys.stdin.isatty()
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        process, copiers = _start(
            replace(job, command=self.composed(job.command)), own_group=own_group
        )
        try:
            # the pid goes first: a sampler must know the process even if a poll fails
            started(process.pid)
            with _forwarding(process.pid, own_group=own_group) as seen:
                overdue = _wait(process, job, seen, poll, own_group=own_group)
        except BaseException:  # Ctrl-C too: no workload may outlive us
            _kill(process.pid, own_group=own_group)
            process.wait()
            raise
        finally:
            for copier in copiers:
                copier.join(timeout=5)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return Outcome(
            status,
            process.pid,
            start,
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            tuple(seen),
            overdue,
            by_signal=process.returncode < 0,
        )

    def capture(self, command: Command, timeout_s: float) -> bytes:
        """The stdout of a short command, its stdin closed.

        Raises Unavailable when it cannot be started, fails, or takes longer than `timeout_s`.
        """
        started = self.composed(command)
        try:
            done = subprocess.run(
                started.argv,
                env=started.environment(os.environ),
                cwd=started.cwd,
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
            )
        except FileNotFoundError as error:
            raise Unavailable(
                f"{started.argv[0]}: no such program here",
                "check the spelling, the PATH, or --python",
            ) from error
        except (subprocess.SubprocessError, OSError) as error:
            said = (
                (getattr(error, "stderr", None) or b"")
                .decode(errors="replace")
                .strip()
                .splitlines()
            )
            why = (
                (said[-1] if self._inside is None else "; ".join(said[-2:])) if said else str(error)
            )
            where = "" if self._inside is None else " in the container"
            raise Unavailable(
                f"{command.shell()} failed{where}: {why}", "run it by hand to see why"
            ) from error
        return done.stdout


def _start(job: Job, *, own_group: bool) -> tuple[subprocess.Popen[bytes], list[threading.Thread]]:
    command = job.command
    program = command.argv[0]
    search = command.env.get("PATH") or os.environ.get("PATH")
    if shutil.which(program, path=search) is None:
        raise Unavailable(
            f"{program}: no such program here", "check the spelling, the PATH, or the container"
        )
    log = job.log.open("ab") if job.log is not None else None
    try:
        process = subprocess.Popen(
            command.argv,
            env=command.environment(os.environ),
            cwd=command.cwd,
            process_group=0 if own_group else None,
            stdin=subprocess.DEVNULL if log and not job.echo_stdout else None,
            stdout=subprocess.PIPE if job.echo_stdout else log,
            stderr=subprocess.PIPE if job.stderr_log else None if job.echo_stdout else log,
        )
    except OSError as error:
        raise Unavailable(
            f"{program}: cannot be started ({error.strerror})",
            "check that it is an executable of this machine",
        ) from error
    finally:
        if log is not None:
            log.close()
    copied = [(process.stdout, job.log)] if job.echo_stdout else []
    copied += [(process.stderr, job.stderr_log)] if job.stderr_log else []
    copiers = [
        threading.Thread(target=_copy, args=stream_and_log, daemon=True)
        for stream_and_log in copied
    ]
    for copier in copiers:
        copier.start()
    return process, copiers


def _copy(stream: IO[bytes], log: Path | None) -> None:
    """One of the workload's outputs to its log and to our stderr, as it comes."""
    with stream, (log or Path(os.devnull)).open("ab") as file:
        while chunk := os.read(stream.fileno(), 65536):
            file.write(chunk)
            file.flush()
            try:
                os.write(sys.stderr.fileno(), chunk)
            except OSError:
                pass  # nobody reads our stderr any more; the workload must not block on that


@contextmanager
def _forwarding(pid: int, *, own_group: bool) -> Iterator[list[int]]:
    """Pass signals that the harness gets on to the child (SIGINT on a terminal reached it
    already).
    """
    seen: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        try:
            if own_group:
                os.killpg(pid, number)
            elif number != signal.SIGINT:
                os.kill(pid, number)
        except ProcessLookupError:
            pass  # it ended in the meantime

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(
    process: subprocess.Popen[bytes],
    job: Job,
    seen: list[int],
    poll: Callable[[], None],
    *,
    own_group: bool,
) -> bool:
    """Until its end; whether it had to be killed for being overdue."""
    handle = os.pidfd_open(process.pid)
    deadline: float | None = None
    last_words: float | None = None
    overdue = False
    try:
        while True:
            ended, _, _ = select.select([handle], [], [], POLL_S)
            poll()
            if ended:
                break
            if job.overdue is not None and not overdue and job.overdue():
                overdue = True
                _kill_leaves(process.pid)
                last_words = time.monotonic() + LAST_WORDS_S
            if last_words is not None and time.monotonic() > last_words:
                last_words = None
                _kill_tree(process.pid, own_group=own_group)
            if (
                job.grace_s is not None
                and deadline is None
                and (signal.SIGINT in seen or signal.SIGTERM in seen)
            ):
                deadline = time.monotonic() + job.grace_s
            if deadline is not None and time.monotonic() > deadline:
                _kill(process.pid, own_group=own_group)
                deadline = None
    finally:
        os.close(handle)
    process.wait()
    if own_group and job.grace_s is not None:
        _kill(process.pid, own_group=True)  # what a worker left behind in its group
    return overdue


def _kill(pid: int, *, own_group: bool) -> None:
    try:
        if own_group:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing is left to kill


def _kill_leaves(pid: int) -> None:
    """The processes that no other waits behind: the hung workload, while a tool around it may still
    make its files of what there is.
    """
    for process in leaves(pid):
        kill(process)


def _kill_tree(pid: int, *, own_group: bool) -> None:
    """The process and its descendants, also where they share the harness's group."""
    for process in reversed(tree(pid)):
        kill(process)
    _kill(pid, own_group=own_group)
