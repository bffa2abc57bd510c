"""When a worker ends before its work is done: the harness has ended, or somebody sent SIGINT or
SIGTERM.

The kernel sends its death signal (PR_SET_PDEATHSIG) when the *thread* that started this process
ends, and the process in between may be a profiler; so the signal only makes the worker look whether
the harness is still there.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any, Optional

PR_SET_PDEATHSIG = 1
DEATH_SIGNAL = signal.SIGUSR2


class Stopped(BaseException):
    """The worker is to end now, cleanly. `status` is its exit status. Not an Exception: no point
    may swallow it.
    """

    def __init__(self, reason: str, status: int):
        super().__init__(reason)
        self.reason, self.status = reason, status


class Harness:
    """The process that asked for this worker, as far as it can be seen from here."""

    def __init__(self, pid: Optional[int]):
        self.pid = pid
        self._born = _birth(pid) if pid else ""
        self._starter = os.getppid()

    @property
    def seen(self) -> bool:
        """False where it runs on another node or in another process namespace: then only our
        starter is watched.
        """
        return bool(self._born)

    def lost(self) -> str:
        """Why the harness will not ask for more, or "" while it is there."""
        if self.seen:
            alive = _birth(self.pid) == self._born
            return "" if alive else "the harness (process %d) is gone" % (self.pid or 0)
        return (
            "" if os.getppid() == self._starter else "the process that started this worker is gone"
        )

    def require(self) -> None:
        """Raises Stopped when the harness is gone."""
        reason = self.lost()
        if reason:
            raise Stopped(reason, 128 + signal.SIGTERM)


def _birth(pid: Optional[int]) -> str:
    """Start time of a living process in clock ticks since boot, as text; "" when there is none (a
    zombie is none).
    """
    try:
        with open("/proc/%d/stat" % (pid or 0), encoding="ascii", errors="replace") as file:
            fields = (
                file.read().rpartition(")")[2].split()
            )  # the name before may hold spaces and brackets
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def guard(harness: Harness) -> None:
    """From here on SIGTERM and SIGINT raise Stopped, and the end of the starter makes us look for
    the harness.
    """

    def stop(number: int, _frame: Any) -> None:
        raise Stopped("ended by %s" % signal.Signals(number).name, 128 + number)

    def look(_number: int, _frame: Any) -> None:
        harness.require()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(DEATH_SIGNAL, look)
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(DEATH_SIGNAL), 0, 0, 0)
    except (OSError, AttributeError):
        pass  # not Linux: the look between trials and points remains
    harness.require()
