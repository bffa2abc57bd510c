"""By how many processes one large file may be read. Who starts the reading decides (a command by
its option --processes); a reader that can share its work asks here. Nobody in between passes it on,
since no answer depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

READING = "profharness.readers.kineto.sharing:serve"
"""The work of a process that reads parts of a file for another one."""
WORTH_BYTES = 64 << 20
"""Text for each process, where their number is left open: starting one takes as long as reading a
good part of this."""
MOST = 8
"""Processes where their number is left open: one puts the others' rows together."""
LEAST_BYTES = 8 << 20
"""Text for each process, however many are asked for."""
_ALONE = 1
_HEAD = 16

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


def helpers_for(paths: Sequence[Path]) -> int:
    """How many processes will help this one to read some files, as far as the names, the sizes and
    the first bytes tell: some where it is one file of plain JSON. Several files are read by other
    processes, one each, and what is compressed can only be read from its beginning.
    """
    if len(paths) != 1 or (count := processes_for(paths[0])) == _ALONE:
        return 0
    try:
        with paths[0].open("rb") as file:
            return count - 1 if file.read(_HEAD).lstrip().startswith((b"{", b"[")) else 0
    except OSError:  # a folder, or whoever opens it says why
        return 0
