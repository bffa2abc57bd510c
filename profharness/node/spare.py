"""Processes that are started before there is work for them: fresh interpreters which import what
their work needs while this process still imports what it needs itself.

Each is in a process group of its own: what a terminal sends on Ctrl-C does not reach it. It ends
when its pipes close, so that none outlives the process that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection

_CHILD = "import sys; sys.path[:] = {!r}; from {} import {} as work; work()"

_waiting: ContextVar[list[SpareProcess] | None] = ContextVar("waiting", default=None)


class SpareProcess:
    """A process that calls a function of a module, `"package.module:function"`, which talks through
    its standard input and output. Raises OSError where no process can be started.
    """

    def __init__(self, work: str) -> None:
        self.work = work
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(sys.path, *work.split(":"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # if it fails, this process does what it was to do
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.questions = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self.answers = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def close(self) -> None:
        """It ends here and now, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self.questions.close()
        self.answers.close()


@contextmanager
def started_early(work: str, count: int) -> Iterator[None]:
    """So many processes get ready for some work; whichever were not taken end with this."""
    waiting: list[SpareProcess] = []
    token = _waiting.set(waiting)
    try:
        with suppress(OSError):  # no process can be started: whoever needs one says so
            waiting.extend(SpareProcess(work) for _ in range(count))
        yield
    finally:
        _waiting.reset(token)
        for one in waiting:
            one.close()


def take(work: str) -> SpareProcess:
    """A process that was started early for this work, or a new one. Raises OSError where none can
    be started. Whoever takes it closes it.
    """
    waiting = _waiting.get() or []
    for place, one in enumerate(waiting):
        if one.work == work:
            return waiting.pop(place)
    return SpareProcess(work)
