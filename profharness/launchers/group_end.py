"""How a process group ends once the harness got a signal: by itself within its grace time, else by
force, also where a shell script stands around the tool and swallows the signal or ends before it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.launchers.process_tree import kill, tree

if TYPE_CHECKING:
    import psutil  # imported where it is used: what starts no process does not wait for it

AGAIN_S = 1.0
"""A second signal counts from here on: schedulers and `timeout` send the same one to the process
and to its group at once."""
STRAGGLERS_S = 10.0
"""How long the others of a group may take once its first process has ended after a signal."""
_LOOK_S = 0.05


class Signals:
    """The signals that came for one job, and what follows from them.

    `own_interrupts`: SIGINT is the program's own business (an interactive one uses it), so that
    only SIGTERM begins the grace time, and SIGINT counts behind a SIGTERM only.
    """

    def __init__(self, grace_s: float | None, *, own_interrupts: bool) -> None:
        self.seen: list[int] = []
        self._grace_s = grace_s
        self._own_interrupts = own_interrupts
        self._first: float | None = None
        self._deadline: float | None = None
        self._again = False

    def add(self, number: int) -> None:
        """A signal came and was passed on; called in a signal handler."""
        self.seen.append(number)
        if number not in (signal.SIGINT, signal.SIGTERM):
            return
        now = time.monotonic()
        if self._first is not None:
            self._again |= now - self._first >= AGAIN_S
        elif number == signal.SIGTERM or not self._own_interrupts:
            self._first = now
            self._deadline = None if self._grace_s is None else now + self._grace_s

    @property
    def asked_to_end(self) -> bool:
        """Whether a signal came that is to end the job."""
        return self._first is not None

    def is_over(self) -> bool:
        """Whether the job is to be ended by force: its grace time has passed, or a second signal
        came.
        """
        return self._again or (self._deadline is not None and time.monotonic() > self._deadline)


def end_by_force(pid: int, known: Sequence[psutil.Process] = (), *, own_group: bool) -> None:
    """SIGKILL for the process, its group if it leads one, all that descend from it, and the
    `known` descendants of earlier.
    """
    family = [*reversed(tree(pid)), *known]
    if own_group:
        kill_group(pid)
    for process in family:
        kill(process)


def end_stragglers(group: int, signals: Signals, known: Sequence[psutil.Process] = ()) -> None:
    """The first process of the group ended after a signal: wait for the others, then end them by
    force.
    """
    limit = time.monotonic() + STRAGGLERS_S
    while left := members(group):
        if signals.is_over() or time.monotonic() > limit:
            family = [*known, *(process for pid in left for process in tree(pid))]
            kill_group(group)
            for process in family:
                kill(process)
            return
        time.sleep(_LOOK_S)


def members(group: int) -> list[int]:
    """The processes of a group that run; zombies do not."""
    found: list[int] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208  a thousand Path objects would be made
        if not entry.isdigit():
            continue
        try:
            fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended in the meantime
        if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
            found.append(int(entry))
    return found


def kill_group(group: int) -> None:
    """SIGKILL for all of a process group; nothing happens where it has ended."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing is left to kill
