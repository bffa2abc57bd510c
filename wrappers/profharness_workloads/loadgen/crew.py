"""The client processes of one level: forked together, started together, watched, and never left
behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from time import perf_counter_ns
from typing import Callable, Dict, List, Sequence

from profharness_workloads.loadgen import board
from profharness_workloads.loadgen.client_plan import Plan
from profharness_workloads.loadgen.loop import Loop
from profharness_workloads.shared.lifetime import PR_SET_PDEATHSIG
from profharness_workloads.shared.protocol import Refusal

START_AHEAD_NS = 5_000_000
END_GRACE_S, GIVEN_UP_S = 5.0, 1.0


class LevelFailed(Refusal):
    """The level cannot be measured; the text says why."""


class Crew:
    """The client processes of a level, as a context manager: none of them outlives it, whatever
    happens inside.
    """

    def __init__(self, plans: Sequence[Plan]):
        self._plans = plans
        self._board = board.Board(len(plans))
        self._alive: Dict[int, int] = {}
        self._codes: List[int] = []

    def __enter__(self) -> "Crew":  # noqa: PYI034 - typing.Self came with 3.11
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        for plan in self._plans:
            pid = os.fork()
            if pid == 0:
                _be_client(plan, self._board, parent)
            self._alive[pid] = plan.client
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._alive:  # a level that was given up: its records are worth keeping
            self._board.common[board.DRAIN_NS] = 1
            self._board.common[board.PHASE] = board.STOP
            deadline = time.monotonic() + GIVEN_UP_S
            while self._alive and time.monotonic() < deadline:
                self._reap()
                time.sleep(0.002)
        for pid in list(self._alive):
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass  # it ended by itself meanwhile
        self._alive.clear()

    @property
    def totals(self) -> board.Totals:
        return self._board.totals()

    @property
    def first_failures(self) -> Sequence[str]:
        """The first failure of each client that had one."""
        return self._board.first_failures()

    def start(self, limit_s: float, still_wanted: Callable[[], None]) -> int:
        """Wait for all connections, then set the common start, which is returned. Raises
        LevelFailed.
        """
        deadline = time.monotonic() + limit_s
        while self._board.ready() < len(self._plans):
            still_wanted()
            self.check()
            if time.monotonic() > deadline:
                raise LevelFailed(
                    "the clients were not ready within %g s%s" % (limit_s, self._why())
                )
            time.sleep(0.002)
        start = perf_counter_ns() + START_AHEAD_NS
        self._board.common[board.START_NS] = start
        return start

    def check(self) -> None:
        """Raises LevelFailed when a client process ended before it should."""
        self._reap()
        if self._codes:
            raise LevelFailed(
                "a client process ended early (%s)%s" % (_described(self._codes[0]), self._why())
            )

    def open_window(self, ahead_ns: int = 0) -> int:
        """Set the start of the window, `ahead_ns` from now, which is returned."""
        start = perf_counter_ns() + ahead_ns
        self._board.common[board.WINDOW_NS] = start
        self._board.common[board.PHASE] = board.MEASURE
        return start

    def stop(self, drain_s: float) -> None:
        """No more requests; those in flight get `drain_s`. Returns when all clients have ended.
        Raises LevelFailed.
        """
        common = self._board.common
        common[board.DRAIN_NS] = perf_counter_ns() + int(drain_s * 1e9)
        common[board.PHASE] = board.STOP
        deadline = time.monotonic() + drain_s + END_GRACE_S
        while self._alive:
            self._reap()
            if time.monotonic() > deadline:
                raise LevelFailed(
                    "a client process did not end within %g s%s"
                    % (drain_s + END_GRACE_S, self._why())
                )
            time.sleep(0.002)
        bad = [code for code in self._codes if code]
        if bad:
            raise LevelFailed("a client process failed (%s)%s" % (_described(bad[0]), self._why()))

    def cpu_ns(self) -> int:
        """CPU time of the client processes and of this one."""
        return time.process_time_ns() + sum(process_cpu_ns(pid) for pid in self._alive)

    def _reap(self) -> None:
        for pid in list(self._alive):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._alive[pid]
                self._codes.append(
                    -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                )

    def _why(self) -> str:
        failures = self.first_failures
        return ": " + failures[0] if failures else ""


def _described(code: int) -> str:
    return "by %s" % signal.Signals(-code).name if code < 0 else "status %d" % code


def process_cpu_ns(pid: int) -> int:
    """CPU time of a process of ours, 0 when it is gone (its clock's number is built as
    clock_getcpuclockid does).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _be_client(plan: Plan, shared: board.Board, parent: int) -> None:
    """Run the loop of a client in a forked process. Never returns."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too and ends us
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)  # it died before it could be watched: no signal will come
        Loop(
            plan,
            shared.common,
            shared.of(plan.client),
            lambda words: shared.say(plan.client, words),
        ).run()
        code = 0
    except (
        BaseException
    ) as error:  # of any kind: this process must not run on as a copy of the worker
        shared.say(plan.client, "%s: %s" % (type(error).__name__, error))
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
