"""Copies what a process says to its log and to our own stderr, as it comes, and never stops while
the process lives: a log that takes no more must not block the process, nor end it by SIGPIPE.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from pathlib import Path
from typing import IO

from profharness.rundir.lost import LostFile

_CHUNK = 1 << 16


class Copier(threading.Thread):
    """One output of a process to `log` (None for no log) and to our stderr. `lost` says from when
    on the log lacks what came.
    """

    def __init__(self, stream: IO[bytes], log: Path | None) -> None:
        super().__init__(daemon=True)
        self.lost: LostFile | None = None
        self._stream = stream
        self._log = log
        self._heard = True

    def run(self) -> None:
        """Until the last process that holds the pipe has closed it."""
        with self._stream:
            handle = self._opened()
            while chunk := os.read(self._stream.fileno(), _CHUNK):
                if handle is not None and not self._kept(handle, chunk):
                    os.close(handle)
                    handle = None
                self._passed_on(chunk)
            if handle is not None:
                os.close(handle)

    def _opened(self) -> int | None:
        if self._log is None:
            return None
        try:
            return os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            self.lost = LostFile.of(self._log, error)
            return None

    def _kept(self, handle: int, chunk: bytes) -> bool:
        try:
            _write_all(handle, chunk)
        except OSError as error:
            self.lost = LostFile.of(self._log or "", error)
            return False
        return True

    def _passed_on(self, chunk: bytes) -> None:
        """To our stderr, until nobody reads that any more. Where it takes nothing for another
        reason, such as a full disk, the next chunk is tried again.
        """
        if not self._heard:
            return
        try:
            _write_all(sys.stderr.fileno(), chunk)
        except BrokenPipeError:
            self._heard = False
        except (OSError, ValueError):  # ValueError: our stderr is closed
            pass


def _write_all(handle: int, data: bytes) -> None:
    """All of it, also into a pipe that takes a part at a time, or that somebody made non-blocking.
    Raises OSError.
    """
    while data:
        try:
            data = data[os.write(handle, data) :]
        except BlockingIOError:
            select.select([], [handle], [])
