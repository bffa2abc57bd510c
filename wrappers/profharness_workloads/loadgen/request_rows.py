"""The records of one client process: a row of eight int64 for each request, in a file without a
header.

sequence, intended, sent, done (CLOCK_MONOTONIC ns), items, status, think time (ns), server. The
sequence is the client's own number; the file's name says which client it is.
"""

from __future__ import annotations

import array

OK, FAILED, TIMED_OUT, CANCELLED = 0, 1, 2, 3
FLUSH_ROWS = 2048
SEQUENCES = 1 << 40


class RequestRows:
    """Gathers rows and writes them, FLUSH_ROWS at a time. Raises OSError."""

    def __init__(self, path: str):
        self._rows = array.array("q")
        self._file = open(path, "wb", buffering=0)

    def add(self, sequence: int, *values: int) -> None:
        """Add one row: its sequence number and the seven other values, in the order of the file."""
        self._rows.append(sequence % SEQUENCES)
        self._rows.extend(values)
        if len(self._rows) >= 8 * FLUSH_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        data = memoryview(self._rows).cast("B")
        while len(data):
            data = data[self._file.write(data) or 0 :]
        del data
        self._rows = array.array("q")
