"""Keeps the memory that one block of a file, or one step of an analysis, needed for the next.

A file is read in blocks of equal size, each of which needs the memory of the one before, and what
is computed of columns needs columns of their length again and again. glibc gives it back to the
system as soon as it is free, and the system clears every page before it lends it again: most page
faults, and most system time. Limits and their names are those of `mallopt` (malloc.h); other C
libraries have none. It also lets a reader of many small objects pause Python's search for cycles.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20  # bytes at the end of the heap that stay
_APART = 32 << 20  # the most that glibc allows: larger blocks are given back one by one


@cache
def keep_freed_memory() -> bool:
    """Whether this process now does so; its first call decides."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _APART)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))


@contextmanager
def without_collection() -> Iterator[None]:
    """No search for cycles inside of the block: where millions of lists are made and none refers
    back, the search takes as long as the work. Memory is freed all the same.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
