"""Keeps the memory that one block of a file needed for the next block.

A file is read in blocks of equal size, each of which needs the memory of the one before. glibc gives it back to the system as soon as
it is free, and the system clears every page before it lends it again: a third of the page faults of reading, and most system time.
Limits and their names are those of `mallopt` (malloc.h); other C libraries have none.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 16 << 20  # bytes at the end of the heap that stay
_APART = 4 << 20  # blocks of more bytes are given back one by one, as columns of a whole trace should be


@cache
def keep_freed_memory() -> bool:
    """Whether this process now does so; its first call decides."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _APART)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))
