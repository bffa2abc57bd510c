"""A point's output goes to its own logs: descriptors 1 and 2 are moved, so that native code follows
too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Iterator


@contextlib.contextmanager
def output_to(folder: str) -> Iterator[None]:
    """Append stdout and stderr of this process to `folder`/stdout.log and stderr.log; put back at
    the end.

    With PROFHARNESS_KEEP_STDERR stderr stays where it is, for a wrapper that stamps its lines.
    """
    flush_all()
    kept = [os.dup(1), os.dup(2)]
    moved = (
        ((1, "stdout.log"),)
        if os.environ.get("PROFHARNESS_KEEP_STDERR")
        else ((1, "stdout.log"), (2, "stderr.log"))
    )
    try:
        for fd, name in moved:
            log = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.dup2(log, fd)
            os.close(log)
        yield
    finally:
        flush_all()
        for fd, original in zip((1, 2), kept):
            os.dup2(original, fd)
            os.close(original)


def flush_all() -> None:
    """Python's and the C library's buffers."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed or absent: nothing is lost by going on
    try:
        ctypes.CDLL(None).fflush(None)
    except (OSError, AttributeError):
        pass  # no C library to be found by that name
