"""The local launcher: a child process on this node.

On a terminal the child stays in the harness's process group, so that the terminal's own Ctrl-C
reaches it and reading the keyboard works; elsewhere it gets a group of its own and signals are
forwarded to that group.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from profharness.errors import Unavailable
from profharness.launchers import Job, Outcome, Surrounding
from profharness.launchers.command import Command
from profharness.launchers.copying import Copier
from profharness.launchers.forwarding import Forwarding
from profharness.launchers.group_end import (
    Signals,
    end_by_force,
    end_stragglers,
    kill_group,
)
from profharness.launchers.leash import leashed
from profharness.launchers.process_tree import kill, leaves, tree
from profharness.rundir.lost import LostFile

if TYPE_CHECKING:
    import psutil  # imported where it is used: what starts no process does not wait for it

ValueT = TypeVar("ValueT")
POLL_S = 0.05
# How long a tool may take to write its files once the processes that it waited for have been
# killed.
LAST_WORDS_S = 10.0


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
        signals = Signals(job.grace_s, own_interrupts=job.is_command and not own_group)
        composed, copiers = replace(job, command=self.composed(job.command)), list[Copier]()
        try:
            with Forwarding(signals, own_group=own_group) as forwarding:
                process, copiers = _start(composed, own_group=own_group)
                watch = _Watch(process, job, signals, poll, own_group=own_group)
                try:
                    # the pid goes first: a sampler must know the process even if a poll fails
                    watch.guarded(started, process.pid)
                    forwarding.begin(process.pid)
                    watch.wait()
                except BaseException:  # Ctrl-C too: no workload may outlive us
                    end_by_force(process.pid, own_group=own_group)
                    process.wait()
                    raise
        finally:
            for copier in copiers:
                copier.join(timeout=5)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        lost = (*watch.lost.values(), *(copier.lost for copier in copiers if copier.lost))
        return Outcome(
            status,
            process.pid,
            start,
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            tuple(signals.seen),
            watch.overdue,
            by_signal=process.returncode < 0,
            lost=lost,
        )

    def capture(self, command: Command, timeout_s: float) -> bytes:
        """The stdout of a short command, its stdin closed. It ends with the harness, since what it
        asks (a driver, say) may never answer.

        Raises Unavailable when it cannot be started, fails, or takes longer than `timeout_s`.
        """
        started = self.composed(command)
        search = started.env.get("PATH") or os.environ.get("PATH")
        if shutil.which(started.argv[0], os.F_OK, search) is None:
            raise Unavailable(
                f"{started.argv[0]}: no such program here",
                "check the spelling, the PATH, or --python",
            )
        try:
            done = _answered(started, timeout_s)
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


def _answered(command: Command, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run(check=True)`, with the whole group ended where it takes too long, or where
    something ends the wait or the harness. Raises OSError and SubprocessError.
    """
    process = subprocess.Popen(
        leashed(command).argv,
        env=command.environment(os.environ),
        cwd=command.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    process.args = command.argv  # errors name the command, not the leash
    with process:
        try:
            out, said = process.communicate(timeout=timeout_s)
        except BaseException:  # Ctrl-C too: what it started may hold the pipes open for ever
            end_by_force(process.pid, own_group=True)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command.argv, out, said)
    return subprocess.CompletedProcess(command.argv, 0, out, said)


def _start(job: Job, *, own_group: bool) -> tuple[subprocess.Popen[bytes], list[Copier]]:
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
    copied = ((process.stdout, job.log), (process.stderr, job.stderr_log))
    copiers = [Copier(stream, log) for stream, log in copied if stream is not None]
    for copier in copiers:
        copier.start()
    return process, copiers


class _Watch:
    """Waits for the end of one process, and ends it where it does not end by itself.

    What the harness cannot read or write meanwhile, such as on a disk that is full, is kept in
    `lost` and never ends the process.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        job: Job,
        signals: Signals,
        poll: Callable[[], None],
        *,
        own_group: bool,
    ) -> None:
        self.overdue = False
        self.lost: dict[str, LostFile] = {}
        self._process = process
        self._job = job
        self._signals = signals
        self._poll = poll
        self._own_group = own_group
        self._last_words: float | None = None

    def guarded(self, call: Callable[..., ValueT], *values: int) -> ValueT | None:
        """What the call answers; None where it could not read or write."""
        try:
            return call(*values)
        except OSError as error:
            lost = LostFile.of("the run folder", error)
            self.lost.setdefault(lost.path, lost)
            return None

    def wait(self) -> None:
        """Until the end of the process, and after a signal of its group."""
        pid, signals = self._process.pid, self._signals
        handle = os.pidfd_open(pid)
        known: list[psutil.Process] = []  # a script in between may end before what it started
        forced = False
        try:
            while True:
                ended, _, _ = select.select([handle], [], [], POLL_S)
                self.guarded(self._poll)
                if ended:
                    break
                self._end_overdue()
                if signals.asked_to_end and not known:
                    known = tree(pid)[1:]
                if signals.is_over() and not forced:
                    forced = True
                    end_by_force(pid, known, own_group=self._own_group)
        finally:
            os.close(handle)
        self._process.wait()
        if self._own_group and self._job.grace_s is not None and not self._job.is_command:
            kill_group(pid)  # what a worker left behind in its group
        elif self._own_group and signals.asked_to_end:
            end_stragglers(pid, signals, known)

    def _end_overdue(self) -> None:
        """The leaves first: a tool around the hung workload may still make its files."""
        asked = self._job.overdue
        if asked is not None and not self.overdue and self.guarded(asked):
            self.overdue = True
            for process in leaves(self._process.pid):
                kill(process)
            self._last_words = time.monotonic() + LAST_WORDS_S
        if self._last_words is not None and time.monotonic() > self._last_words:
            self._last_words = None
            end_by_force(self._process.pid, own_group=self._own_group)
