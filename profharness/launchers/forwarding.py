"""Signals to the harness are passed on to the process that it starts, from before the start on: one
that comes in the middle of it would otherwise end the harness and leave the process behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, Self

from profharness.launchers.group_end import Signals

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Forwarding:
    """A context around the start of a process and the time that it runs. In other threads than the
    main one it does nothing. `own_group`: otherwise SIGINT on a terminal reaches it anyway.
    """

    def __init__(self, signals: Signals, *, own_group: bool) -> None:
        self._signals = signals
        self._own_group = own_group
        self._pid: int | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # the process inherits what is ignored (nohup), so that these signals are taken up later
        self._listen(one for one in _FORWARDED if signal.getsignal(one) is not signal.SIG_IGN)
        return self

    def begin(self, pid: int) -> None:
        """The process has started: it gets what came meanwhile, and what comes from now on."""
        self._pid = pid
        self._listen(one for one in _FORWARDED if one not in self._before)
        for number in self._early:
            self._tell(pid, number, early=True)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._pid is None:  # nothing was started: they are the harness's own
            for number in self._early[:1]:
                os.kill(os.getpid(), number)

    def _listen(self, numbers: Iterable[int]) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before |= {number: signal.signal(number, self._came) for number in numbers}

    def _came(self, number: int, _frame: FrameType | None) -> None:
        self._signals.add(number)
        if self._pid is None:
            self._early.append(number)
        else:
            self._tell(self._pid, number)

    def _tell(self, pid: int, number: int, *, early: bool = False) -> None:
        try:
            if self._own_group:
                os.killpg(pid, number)
            elif early or number != signal.SIGINT:
                os.kill(pid, number)
        except ProcessLookupError:
            pass  # it ended in the meantime
