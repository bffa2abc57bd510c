"""Which of many repeats to name: the one that saves most, then the one that saves most of what is
left, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from profharness.analysis.sequences.repeats import Repeat
from profharness.trace.model import F64, I64


def saved(repeat: Repeat, before: F64) -> float:
    """What all places of a repeat save: `before` is the running sum of what is saved between each
    code and the one before it.
    """
    ends = repeat.starts + repeat.length - 1
    return float(np.sum(before[ends] - before[repeat.starts]))


def chosen(found: Sequence[Repeat], saves: F64, most: int) -> list[Repeat]:
    """Up to `most` repeats that share no code with one another, the most saving first; each with
    the places that are left to it, of which there are two at least. `saves` is what is saved
    between each code and the one before it. Of equals the longer, then the earlier is first.
    """
    before = np.cumsum(saves)
    heap = [
        (-saved(repeat, before), -repeat.length, int(repeat.starts[0]), at)
        for at, repeat in enumerate(found)
    ]
    heapq.heapify(heap)
    used = np.zeros(len(saves) + 1, np.int64)
    taken: list[Repeat] = []
    while heap and len(taken) < most:
        value, _, _, at = heapq.heappop(heap)
        repeat = _left(found[at], used)
        if len(repeat.starts) < 2:
            continue
        now = saved(repeat, before)
        if now <= 0:
            continue
        if -now > value:  # less than before: others may be better now
            heapq.heappush(heap, (-now, -repeat.length, int(repeat.starts[0]), at))
            continue
        taken.append(repeat)
        used = _with(used, repeat)
    return taken


def _left(repeat: Repeat, used: I64) -> Repeat:
    free = used[repeat.starts + repeat.length] == used[repeat.starts]
    return Repeat(repeat.length, repeat.starts[free])


def _with(used: I64, repeat: Repeat) -> I64:
    """The running count of used codes, with those of this repeat; the first of it is 0."""
    marks = np.diff(used)
    for step in range(repeat.length):
        marks[repeat.starts + step] = 1
    return np.concatenate(([0], np.cumsum(marks)))
