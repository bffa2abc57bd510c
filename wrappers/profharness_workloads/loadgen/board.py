"""What the client processes of one level and their parent tell each other: numbers in shared
memory, no messages.

The parent sets the phase and the start of the window; each client counts. Every number has one
writer.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple, Sequence

WARM_UP, MEASURE, STOP = 0, 1, 2
# numbers of the parent
PHASE, START_NS, WINDOW_NS, DRAIN_NS = range(4)
_COMMON = 8
# numbers of each client
READY, DONE, LATENCY_NS, FAILED, TRANSMITTED, RECEIVED, CONNECTIONS, UNSENT = range(8)
_EACH = 8
WORDS = 400  # bytes for a client's first failure


class Totals(NamedTuple):
    """Counts over all clients since the start: requests answered, their summed latency, failed
    ones, bytes.
    """

    done: int
    latency_ns: int
    failed: int
    transmitted: int
    received: int


class Board:
    """Shared by fork. `common` and `of(client)` are views of int64."""

    def __init__(self, clients: int):
        self.clients = clients
        self._numbers = 8 * (_COMMON + _EACH * clients)
        self._memory = mmap.mmap(-1, self._numbers + WORDS * clients)
        self._view = memoryview(self._memory)
        words = self._view[: self._numbers].cast("q")
        self.common = words[:_COMMON]
        self._each = [
            words[_COMMON + _EACH * k : _COMMON + _EACH * (k + 1)] for k in range(clients)
        ]

    def of(self, client: int) -> "memoryview":
        return self._each[client]

    def totals(self) -> Totals:
        """The sums over all clients so far: requests, ns of latency, bytes."""
        rows = self._each
        return Totals(
            *(
                sum(row[at] for row in rows)
                for at in (DONE, LATENCY_NS, FAILED, TRANSMITTED, RECEIVED)
            )
        )

    def ready(self) -> int:
        """Clients that have their connections."""
        return sum(1 for row in self._each if row[READY])

    def say(self, client: int, words: str) -> None:
        """Keep a client's first failure."""
        at = self._numbers + WORDS * client
        if self._memory[at] == 0:
            raw = words.encode("utf-8", "replace")[: WORDS - 1]
            self._memory[at : at + len(raw)] = raw

    def first_failures(self) -> Sequence[str]:
        """The first failure of each client that had one."""
        failures = []
        for client in range(self.clients):
            at = self._numbers + WORDS * client
            raw = self._memory[at : at + WORDS].split(b"\0", 1)[0]
            if raw:
                failures.append(raw.decode("utf-8", "replace"))
        return failures
