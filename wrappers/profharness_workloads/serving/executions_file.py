"""Executions as the models of a repository append them to files (repository_model), read while the
files grow, and what they say of a level.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from profharness_workloads.serving.repository_model import COLUMNS

WIDTH = 8  # bytes of a number


class Execution(NamedTuple):
    """One of them, with the columns of the file; `sequences` are the numbers of its requests."""

    requests: int
    start_ns: int
    end_ns: int
    items: int
    instance: int
    shapes: int
    shortest: int
    longest: int
    calls: int
    given: int
    run: int
    sequences: Tuple[int, ...]


class Follower:
    """Reads what was appended to one model's files since it looked last; nothing without a
    folder.
    """

    def __init__(self, folder: str, model: str):
        self._folder, self._begin = folder, model + "-"
        self._at: Dict[str, int] = {}

    def news(self) -> List[Execution]:
        """Whole executions only; what a killed process left half is never taken."""
        found: List[Execution] = []
        for name in sorted(os.listdir(self._folder)) if self._folder else ():
            # NAME-INSTANCE-PID.i64: another model's name may begin like this one's
            if name.rsplit("-", 2)[0] + "-" != self._begin or not name.endswith(".i64"):
                continue
            with open(os.path.join(self._folder, name), "rb") as file:
                file.seek(self._at.get(name, 0))
                data = file.read()
            numbers = np.frombuffer(data[: len(data) // WIDTH * WIDTH], "<i8").tolist()
            taken = list(_executions(numbers))
            found += taken
            read = sum(len(COLUMNS) + len(one.sequences) for one in taken)
            self._at[name] = self._at.get(name, 0) + read * WIDTH
        return found


def _executions(numbers: Sequence[int]) -> Iterator[Execution]:
    at, head = 0, len(COLUMNS)
    while at + head <= len(numbers) and at + head + numbers[at] <= len(numbers):
        end = at + head + numbers[at]
        yield Execution._make((*numbers[at : at + head], tuple(numbers[at + head : end])))
        at = end


def notes(executions: Sequence[Execution]) -> Dict[str, str]:
    """What a level's executions say of how Triton filled its batches; none without any."""
    if not executions:
        return {}
    run = sum(one.run for one in executions)
    return {
        "ragged_executions": str(len(executions)),
        "ragged_requests": str(sum(one.requests for one in executions)),
        "ragged_shapes": str(sum(one.shapes for one in executions)),
        "ragged_mixed": str(sum(one.shapes > 1 for one in executions)),
        "ragged_most_shapes": str(max(one.shapes for one in executions)),
        "ragged_shortest": str(min(one.shortest for one in executions)),
        "ragged_longest": str(max(one.longest for one in executions)),
        "ragged_calls": str(sum(one.calls for one in executions)),
        "ragged_filled_share": "%.4f" % (1 - sum(one.given for one in executions) / max(1, run)),
    }
