"""Tests that measure time against a theory run alone: where several processes run the tests, the
others wait meanwhile.

Every test holds a shared lock, one marked `alone` an exclusive one. Who wants the exclusive lock
holds the gate while it waits, so that no new test begins before it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def files(controller: int) -> tuple[Path, Path]:
    """The gate and the lock of the test run whose controlling process has this pid."""
    folder = Path(tempfile.gettempdir())
    return (
        folder / f"profharness-tests-{controller}.gate",
        folder / f"profharness-tests-{controller}.lock",
    )


@contextmanager
def turn(controller: int, *, alone: bool) -> Iterator[None]:
    """Hold the lock of this test run, alone or beside others."""
    gate, lock = (
        os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for path in files(controller)
    )
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
    finally:
        fcntl.flock(
            lock, fcntl.LOCK_UN
        )  # closing would not do where a process that a test forked lives on
        os.close(lock)
        os.close(gate)
