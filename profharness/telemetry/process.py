"""What the sampler asks of the kernel for itself: an exact timer, signals that it waits for, and an
end with its parent.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import struct
from functools import partial

from profharness.telemetry.sources.host import procfs

_PR_SET_PDEATHSIG = 1
_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1
_TFD_CLOEXEC = os.O_CLOEXEC
# sent by the kernel when the thread that started us ends, which need not be the end of its process
PARENT_SIGNAL = signal.SIGUSR1
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
STOP_S = 60.0  # more than the harness waits for an end that is under way


class Timer:
    """Wakes at a grid of CLOCK_MONOTONIC, or early when a signal came: `signo` is its number then.

    A timerfd that the kernel winds up again by itself: a wait is one system call without arguments
    to prepare, it is not subject to timer slack, and errors cannot add up. Signals only note
    themselves, so none ends a write half-way.
    """

    def __init__(self) -> None:
        """Raises OSError where the kernel gives no timer."""
        self.signo = 0
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "the kernel gives no timer")
        self.wait = partial(os.read, self._handle, 8)
        """Returns at the next time of the grid, or at once when one or more passed since the last
        return.
        """
        for number in (*STOP_SIGNALS, PARENT_SIGNAL):
            signal.signal(number, self._noted)

    def start(self, first_ns: int, period_ns: int = 0) -> None:
        """Wake at `first_ns` (CLOCK_MONOTONIC, above 0), and each period after it; once where that
        is 0. A signal that was noted wakes at once.
        """
        times = (
            *divmod(period_ns, 1_000_000_000),
            *divmod(1 if self.signo else first_ns, 1_000_000_000),
        )
        self._libc.timerfd_settime(
            self._handle, _TFD_TIMER_ABSTIME, struct.pack("@llll", *times), None
        )

    def taken(self) -> int:
        """The signal that came, or 0; it counts as seen then, and the timer is to be started
        again.
        """
        signo, self.signo = self.signo, 0
        return signo

    def close(self) -> None:
        """The end has begun: whoever asks for it again, as a batch system and the harness do one
        after the other, does not end the process by the signal.
        """
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, STOP_S)

    def _noted(self, signo: int, _: object) -> None:
        """A signal to stop is not forgotten for another that came after it. The wait is retried by
        Python, and returns.
        """
        if self.signo not in STOP_SIGNALS:
            self.signo = signo
        if signo in STOP_SIGNALS:
            signal.setitimer(signal.ITIMER_REAL, STOP_S)  # SIGALRM ends what hangs at its end
        self.start(1)


def prepare() -> Timer:
    """The timer, with the signals that it takes; no garbage collection, and as many open files as
    are allowed.

    SIGINT is ignored: Ctrl-C reaches the whole foreground group, and the harness decides when
    sampling ends.
    """
    timer = Timer()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(PARENT_SIGNAL), 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.disable()
    return timer


class Parent:
    """Watches the process that the sampler works for; it need not be the direct parent. Pid 0 is
    always there.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._direct = pid == os.getppid()
        stat = procfs.process_stat(pid) if pid and not self._direct else None
        self._start_boot_ns = stat.start_boot_ns if stat else 0

    def is_gone(self) -> bool:
        """Whether the process that the sampler belongs to has ended, by its start time where pids
        may be reused.
        """
        if not self._pid:
            return False
        if self._direct:
            return os.getppid() != self._pid
        stat = procfs.process_stat(self._pid)
        return stat is None or stat.state == "Z" or stat.start_boot_ns != self._start_boot_ns
