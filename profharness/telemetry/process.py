"""What the sampler asks of the kernel for itself: exact timers, signals as events, and an end with its parent."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import time

from profharness.telemetry.sources import procfs

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
PARENT_SIGNAL = signal.SIGUSR1  # sent by the kernel when the thread that started us ends, which need not be the end of its process
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
_AWAITED = tuple(int(number) for number in (*STOP_SIGNALS, PARENT_SIGNAL))  # plain numbers: they are converted at every wait


def prepare() -> None:
    """1 ns timer slack instead of 50 µs; signals are collected while waiting, so that none ends a write half-way.

    SIGINT is left out: Ctrl-C reaches the whole foreground group, and the harness decides when sampling ends.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, int(PARENT_SIGNAL), 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.disable()


def wait_until(deadline_ns: int) -> int:
    """Sleep until CLOCK_MONOTONIC reaches `deadline_ns`; returns 0, or the number of a signal that came first.

    The rest is computed anew from the absolute deadline at each call, so that errors never add up.
    """
    rest_ns = max(deadline_ns - time.monotonic_ns(), 0)
    caught = signal.sigtimedwait(_AWAITED, rest_ns / 1e9)
    return caught.si_signo if caught else 0


class Parent:
    """Watches the process that the sampler works for; it need not be the direct parent. Pid 0 is always there."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._direct = pid == os.getppid()
        stat = procfs.process_stat(pid) if pid and not self._direct else None
        self._start_boot_ns = stat.start_boot_ns if stat else 0

    def is_gone(self) -> bool:
        if not self._pid:
            return False
        if self._direct:
            return os.getppid() != self._pid
        stat = procfs.process_stat(self._pid)
        return stat is None or stat.state == "Z" or stat.start_boot_ns != self._start_boot_ns
