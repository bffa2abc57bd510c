"""Files that only grow, of which the old part is given back to the file system: an exporter may run
for months.

The bytes become a hole (fallocate(2), FALLOC_FL_PUNCH_HOLE): the file keeps its length and its last
bytes their places, so that who reads its end, or writes on, notices nothing. Where a file system
cannot do that (NFS before 4.2), the file goes on growing.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
HEAD_BYTES = 1 << 20  # the begin, which says what the rows mean
KEEP_BYTES = 8 << 20  # more than is read again, at any rate
STEP_BYTES = 1 << 20


class Forgotten:
    """One growing file and how far it has been forgotten."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._until = HEAD_BYTES

    def forget(self) -> None:
        """Give back what stands more than 8 MB before the end, by whole MB; else do nothing."""
        try:
            until = (self._path.stat().st_size - KEEP_BYTES) // STEP_BYTES * STEP_BYTES
        except OSError:
            return
        if until <= self._until:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        handle = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            libc.fallocate(
                handle, _KEEP_SIZE | _PUNCH_HOLE, self._until, until - self._until
            )  # a file system that refuses keeps the bytes: nothing is lost by that
        finally:
            os.close(handle)
        self._until = until
