"""The files that the sampler writes: named from its folder and host, never over existing ones."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

from profharness.telemetry.clocks import ClockReading, Phase, clock_line

FLUSH_BYTES = 1 << 16
WRITE_FAILED = 100
"""The sampler's exit status, plus the number of the error, where a file of its own took no more: on
such a disk it can leave no words."""


_NO_MORE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE)


def exit_status(error: OSError) -> int:
    """With which the sampler ends after `error`; 1 where it is not of a disk that takes no more."""
    return WRITE_FAILED + error.errno if error.errno in _NO_MORE else 1


def unwritten(status: int) -> str:
    """The system's word for why the sampler that ended with `status` could not write; empty where
    it ended otherwise.
    """
    return os.strerror(status - WRITE_FAILED) if status > WRITE_FAILED else ""


def path_of(folder: str, host: str, suffix: str) -> str:
    """`suffix` is one of ready.json, samples.bin, clocks.jsonl, done.json."""
    return f"{folder}/{host}.{suffix}"


class AppendFile:
    """A new file that grows by whole records; the kernel has every byte after `flush`, so `kill -9`
    loses none of them.

    Who appends very often adds to `waiting` itself, and calls `flush` when that holds FLUSH_BYTES.
    """

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.waiting = bytearray()

    def append(self, record: bytes) -> None:
        """Keep the record; it goes to the file once `FLUSH_BYTES` wait. Raises OSError as `flush`
        does.
        """
        self.waiting += record
        if len(self.waiting) >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Raises OSError, for a full disk among others."""
        while self.waiting:
            written = os.write(self._handle, self.waiting)
            del self.waiting[:written]

    def close(self) -> None:
        """Write what waits and close. Raises OSError as `flush` does."""
        self.flush()
        os.close(self._handle)


class ClockFile:
    """`<host>.clocks.jsonl`: each line goes to the kernel at once."""

    def __init__(self, path: str, host: str) -> None:
        self._file = AppendFile(path)
        self._host = host

    def record(self, phase: Phase, reading: ClockReading) -> None:
        """Write one reading of the clocks (ns) as a line, at once. Raises OSError, for a full disk
        among others.
        """
        self._file.append(clock_line(self._host, phase, reading))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def write_json(path: str, content: dict[str, Any]) -> None:
    """Replace `path` in one step, so that who waits for the file never reads half of it."""
    temporary = f"{path}.{os.getpid()}"
    # pathlib would double the start-up time
    with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123  pathlib is slow to load
        json.dump(content, file)
        file.write("\n")
    os.replace(temporary, path)  # noqa: PTH105 - pathlib would double the start-up time
