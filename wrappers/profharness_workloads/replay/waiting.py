"""How long threads of this process could have run and had no core, by the kernel's count.

The second number in /proc/self/task/TID/schedstat is the time in ns that a thread spent on a run
queue (Documentation/scheduler/sched-stats.rst in Linux). Where it is missing, nothing is counted.
"""

from __future__ import annotations

import os
from typing import Dict

LEAST = 0.02  # of a time, which stays whatever was waited: the two clocks are not read at once
_TASKS = "/proc/self/task"


def delays() -> Dict[str, int]:
    """The ns that each thread has waited for a core until now, by its id."""
    found: Dict[str, int] = {}
    try:
        names = os.listdir(_TASKS)
    except OSError:
        return found
    for name in names:
        try:
            with open("%s/%s/schedstat" % (_TASKS, name)) as file:
                found[name] = int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return found


class Waiting:
    """Takes waiting off times. Of several threads the one that waited longest counts, since the
    others wait for it at the end of what they do together: so much was lost at least.
    """

    def __init__(self, counts: bool) -> None:
        self._counts = counts
        self._before: Dict[str, int] = {}
        self._waited = self._whole = 0.0

    def begin(self) -> None:
        """A time begins to be taken."""
        if self._counts:
            self._before = delays()

    def off(self, time_ns: float) -> float:
        """The time since `begin` without what was waited in it."""
        if not self._counts:
            return float(time_ns)
        waited = max(
            (now - self._before.get(name, now) for name, now in delays().items()), default=0
        )
        left = max(time_ns - waited, LEAST * time_ns)
        self._whole += time_ns
        self._waited += time_ns - left
        return float(left)

    def share(self) -> float:
        """The share of all times until now that was waited."""
        return self._waited / self._whole if self._whole else 0.0
