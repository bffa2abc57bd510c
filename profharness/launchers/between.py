"""Signals that come while no launched process runs: SIGTERM and SIGHUP end the harness as Ctrl-C
does, so that everything that it started is ended, and the run says how it ended.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """The harness got the signal `number`, as if by Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise Terminated; one that is ignored (nohup) stays so. Does
    nothing in other threads than the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> None:
        raise Terminated(number)

    before = {
        number: signal.signal(number, end)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
