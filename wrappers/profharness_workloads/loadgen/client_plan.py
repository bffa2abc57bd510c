"""What one client process is to do in a level."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

from profharness_workloads.loadgen.arrivals import Arrivals
from profharness_workloads.loadgen.connection import Target


class Plan(NamedTuple):
    """A closed loop holds `slots` requests in flight, an open one opens so many connections first.

    `messages(slot)` gives the requests that a connection sends in turn; `numbered` says that they
    take a sequence, which begins at `first`. `records` is the file for the rows of requests.
    """

    client: int
    clients: int
    slots: int
    targets: Sequence[Target]
    messages: Any
    timeout_ns: int
    records: str
    arrivals: Optional[Arrivals] = None
    think_ns: int = 0
    numbered: bool = True
    first: int = 0
