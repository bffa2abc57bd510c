"""Executions of a served run, as a simulated fleet needs them."""

from __future__ import annotations

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.model import Requests
from profharness.understand.sizing import executions

MS = 1_000_000


def table(execution: list[int], start: list[int], done: list[int]) -> Requests:
    return Requests.build(
        len(done),
        sent_ns=0,
        ok=1,
        items=1,
        execution=execution,
        server_start_ns=np.array(start) * MS,
        done_ns=np.array(done) * MS,
    )


def test_an_execution_counts_the_requests_that_the_window_cut_off() -> None:
    every = table([0, 0, 1, 2, 2], [0, 0, 10, 20, 20], [5, 6, 14, 25, 27])
    good = every.take(np.array([1, 2, 3, 4]))
    assert executions(every, good) == ((2, 0.006), (1, 0.004), (2, 0.006))


def test_a_server_that_does_not_tell_has_none() -> None:
    every = table([0, NULL], [0, 1], [5, 6])
    assert executions(every, every) == ()
