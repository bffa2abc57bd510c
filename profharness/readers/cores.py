"""By how many processes one large file may be read. Who starts the reading decides (a command by
its option --processes); a reader that can share its work asks here. Nobody in between passes it on,
since no answer depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

WORTH_BYTES = 64 << 20
"""Text for each process, where their number is left open: starting one takes as long as reading a
good part of this."""
MOST = 8
"""Processes where their number is left open: one puts the others' rows together."""
LEAST_BYTES = 8 << 20
"""Text for each process, however many are asked for."""
_ALONE = 1

_processes: ContextVar[int | None] = ContextVar("processes", default=_ALONE)


@contextmanager
def reading_by(processes: int | None) -> Iterator[None]:
    """Large files that are read in here may take so many processes, this one included; None: as
    many as they are worth, and as this process has CPUs. Elsewhere it is this process alone.
    """
    token = _processes.set(processes)
    try:
        yield
    finally:
        _processes.reset(token)


def processes_for(path: Path) -> int:
    """How many processes may read this file at once."""
    asked = _processes.get()
    if asked == _ALONE:
        return _ALONE
    try:
        size = path.stat().st_size
    except OSError:  # whoever opens it says why
        return _ALONE
    if asked is not None:
        return max(_ALONE, min(asked, size // LEAST_BYTES))
    return max(_ALONE, min(len(os.sched_getaffinity(0)), size // WORTH_BYTES, MOST))
