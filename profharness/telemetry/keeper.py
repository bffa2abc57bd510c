"""The sampler's second thread: once the harness is gone, whatever ended it, it ends what the
harness left behind, and the sampler itself where that hangs.

Our workers, servers and their clients watch the harness by themselves and end cleanly, but a tool
around them may swallow the signal, and a long call into a library keeps them from seeing it. They
are known by PROFHARNESS_PARENT_PID in their environment, with what descends from them and shares
their process groups; what a user's own command started is not.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import time
from collections.abc import Callable

SIGTERM_S = 1.0  # they were told by the kernel at once
SIGKILL_S = 4.0
GIVE_UP_S = 4.5
_LOOK_S = 0.05
_MARK = "PROFHARNESS_PARENT_PID="
_CLK = 19  # of the fields behind the name in /proc/<pid>/stat: the start time


class Keeper:
    """Waits for the end of the process `harness`; it costs nothing until then. Pid 0 is nobody.
    `gone` is called as soon as it is gone.
    """

    def __init__(self, harness: int, gone: Callable[[], None] = lambda: None) -> None:
        self._harness = harness
        self._gone = gone
        self._over = _thread.allocate_lock()
        self._over.acquire()
        if not harness:
            return
        try:
            handle = os.pidfd_open(harness)
        except OSError:
            handle = -1  # it is gone already, or the kernel has no such handles
        _thread.start_new_thread(self._keep, (handle,))

    def finish(self) -> None:
        """Wait until what the harness left has ended; for a harness that is gone."""
        if self._harness:
            self._over.acquire()

    def _keep(self, handle: int) -> None:
        if handle >= 0:
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            waiting.poll()
        elif os.path.isdir(f"/proc/{self._harness}"):  # noqa: PTH112  no pathlib in the sampler
            self._over.release()
            return
        began = time.monotonic()
        try:
            self._gone()
            end_left(self._harness, began)
        finally:
            self._over.release()
        time.sleep(max(0.0, began + GIVE_UP_S - time.monotonic()))
        os._exit(1)  # a source hangs: what it sampled until the last second is written


def end_left(harness: int, began: float) -> None:
    """End what the process `harness` left, which is gone since `began` (time.monotonic): by
    itself, by SIGTERM, by SIGKILL.
    """
    left = _marked(harness)
    groups = {group for pid, (_, group) in left.items() if group == pid}
    told = False
    while alive := {pid for pid, (start, _) in left.items() if _start_of(pid) == start}:
        now = time.monotonic() - began
        if now >= SIGKILL_S:
            left |= _marked(harness)  # what they started since
            for group in groups:
                _tell(os.killpg, group, signal.SIGKILL)
            for pid in left:
                _tell(os.kill, pid, signal.SIGKILL)
            return
        if now >= SIGTERM_S and not told:
            told = True
            for pid in alive:
                _tell(os.kill, pid, signal.SIGTERM)
        time.sleep(_LOOK_S)


def _marked(harness: int) -> dict[int, tuple[int, int]]:
    """By pid the start time and the group of each process of ours, and of all that descend from
    one or share the group that one leads.
    """
    table = _processes()
    found = {pid for pid in table if _is_marked(pid, harness)}
    leads = {pid for pid in found if table[pid][2] == pid}
    grown = -1
    while grown != len(found):
        grown = len(found)
        found |= {
            pid for pid, (_, parent, group) in table.items() if parent in found or group in leads
        }
    found.discard(os.getpid())
    return {pid: (table[pid][0], table[pid][2]) for pid in found}


def _processes() -> dict[int, tuple[int, int, int]]:
    """Start time, parent and group of all living processes."""
    table: dict[int, tuple[int, int, int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208  no pathlib in the sampler
        fields = _stat(entry) if entry.isdigit() else []
        if fields and fields[0] not in (b"Z", b"X"):
            table[int(entry)] = (int(fields[_CLK]), int(fields[1]), int(fields[2]))
    return table


def _start_of(pid: int) -> int:
    """The start time of a living process; -1 when there is none."""
    fields = _stat(str(pid))
    return int(fields[_CLK]) if fields and fields[0] not in (b"Z", b"X") else -1


def _stat(pid: str) -> list[bytes]:
    """The fields behind the name (proc(5)): state, parent, group ...; none where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  no pathlib in the sampler
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _is_marked(pid: int, harness: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  no pathlib in the sampler
            return f"{_MARK}{harness}".encode() in file.read().split(b"\0")
    except OSError:
        return False  # another user's, or gone


def _tell(how: Callable[[int, int], None], whom: int, number: int) -> None:
    try:
        how(whom, number)
    except OSError:
        pass  # it has ended
