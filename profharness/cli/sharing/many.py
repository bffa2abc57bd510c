"""Who reads many files, and how far they are while one waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from profharness.options.many_files import ManyFiles
from profharness.rundir.shown.screen import Painted, mention

if TYPE_CHECKING:
    from profharness.understand.many.jobs import Workers

EVERY_S = 30.0
"""How often it is said where nobody watches: in the log of a job."""
_AGAIN_S = 0.1
_CLEARED = "\r\x1b[K"


def workers_of(line: ManyFiles) -> Workers:
    """Who reads the files that a line of a command names; they tell on stderr how far they are."""
    from profharness.understand.many.jobs import Workers

    return Workers(line.processes, line.dask, line.dask_workers, FilesRead(sys.stderr))


class FilesRead:
    """Says how many of several files are read: on a terminal in a line that is written over and is
    gone at the end, elsewhere in a line each EVERY_S.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._every = _AGAIN_S if stream.isatty() else EVERY_S
        self._said = clock() - (self._every if stream.isatty() else 0)
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """So many are read. With the last of them, or where the work has ended, `done` is
        `total`.
        """
        if done >= total:
            if self._shown:
                self._write(_CLEARED)
                self._shown = False
            return
        if total < 2 or self._clock() - self._said < self._every:
            return
        self._said = self._clock()
        words = f"{done} of {total} files are read"
        if self._stream.isatty():
            self._write(f"{_CLEARED}{words}")
            self._shown = True
        else:
            mention(words)

    def _write(self, text: str) -> None:
        self._stream.write(Painted(text))
        self._stream.flush()
