"""Executions as the inference function saw them: when the model ran, on how many items, for which
requests.

executions-<pid>.i64 in a point's folder: little-endian int64 rows of 8: execution number, start and
end (CLOCK_MONOTONIC ns), items, requests in the batch, instance, first row of its requests in the
members file, model (index in the ready file). members-<pid>.i64: one int64 per request of each
execution, in order: the request's `profharness_seq`, or -1 where it carried none.
"""

from __future__ import annotations

import collections
import os
import threading
from time import perf_counter_ns
from typing import Any, Deque, Dict, List, Sequence, Tuple

import numpy as np

from profharness_workloads.shared.protocol import Settings

SEQUENCE = "profharness_seq"
UNKNOWN = -1
KEPT = 200_000  # executions between two levels; older ones are dropped
FINISHING_S = 2.0  # how long a level waits for executions that began in it
COLUMNS = 8

Row = Tuple[int, int, int, int, int, int]  # start, end, items, requests, instance, model


class Records:
    """Collects from all instances, and writes into the folder of the level that is open.

    What ran since the last level was closed (a level's warm-up) goes to the level that is opened
    next.
    """

    def __init__(self, settings: Settings, *, on: bool):
        self._settings, self._on = settings, on
        self._lock = threading.Condition()
        self._rows: Deque[Tuple[Row, List[int]]] = collections.deque(maxlen=KEPT)
        self._running: Dict[int, int] = {}
        self._key = ""
        self._number = 0
        self._members = 0
        self._calls = 0

    def begin(self) -> Tuple[int, int]:
        """Called when an execution starts; returns its handle and the time."""
        with self._lock:
            self._calls += 1
            handle = self._calls
            self._running[handle] = start = perf_counter_ns()
        return handle, start

    def end(self, handle: int, row: Row, sequences: List[int]) -> None:
        """Called when an execution has ended with results."""
        with self._lock:
            self._running.pop(handle, None)
            if self._on:
                self._rows.append((row, sequences))
            self._lock.notify_all()

    def failed(self, handle: int) -> None:
        """Called when an execution has ended in an error, of which its requests were told."""
        with self._lock:
            self._running.pop(handle, None)
            self._lock.notify_all()

    def open(self, key: str) -> None:
        """Let executions belong to level `key` from here on."""
        with self._lock:
            self._key, self._members = key, 0
        self.flush()

    def close(self) -> None:
        """End the level: wait for executions that began in it, and write them all."""
        until = perf_counter_ns()
        with self._lock:
            self._lock.wait_for(
                lambda: all(start > until for start in self._running.values()), FINISHING_S
            )
        self.flush()
        with self._lock:
            self._key = ""

    def flush(self) -> None:
        """Write what there is, if a level is open."""
        with self._lock:
            if not self._key or not self._rows:
                return
            taken, key = list(self._rows), self._key
            self._rows.clear()
            table = self._table(taken)
        members = np.array([sequence for _, of_one in taken for sequence in of_one], dtype="<i8")
        folder, owner = self._settings.point_dir(key), os.getpid()
        _append(os.path.join(folder, "members-%d.i64" % owner), members)
        _append(os.path.join(folder, "executions-%d.i64" % owner), table)

    def _table(self, taken: Sequence[Tuple[Row, List[int]]]) -> Any:
        table = np.empty((len(taken), COLUMNS), dtype="<i8")
        for index, ((start, end, items, requests, instance, model), sequences) in enumerate(taken):
            table[index] = (
                self._number,
                start,
                end,
                items,
                requests,
                instance,
                self._members,
                model,
            )
            self._number += 1
            self._members += len(sequences)
        return table


def _append(path: str, array: Any) -> None:
    with open(path, "ab") as file:
        file.write(array.tobytes())


def sequence(parameters: Any) -> int:
    """The number that the client gave to its request."""
    value = (parameters or {}).get(SEQUENCE, UNKNOWN)
    return value if isinstance(value, int) else UNKNOWN
