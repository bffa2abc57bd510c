"""Which processes on a device are the workload's: those named in the roots file, and what descends
from them.

Vendors list the processes of a device by pid. A pid that cannot be looked up here (it belongs to
another user's namespace) is somebody else's. A process that was the workload's once stays it,
though its parent may end first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from profharness.telemetry.sources.host import procfs

_DEEPEST = 64


class Ownership:
    """Remembers what it found of each pid while that stays on a device."""

    def __init__(self, roots_file: str) -> None:
        self._path = roots_file
        self._size = -1
        self._roots: frozenset[int] = frozenset()
        self._ours: dict[int, bool] = {}
        self._sampler = os.getpid()  # a process of ours that counts on the device is no stranger

    @property
    def knows(self) -> bool:
        """Whether there is anything to compare with: without a roots file nobody is a stranger."""
        return bool(self._path)

    def strangers(self, pids: Iterable[int]) -> int:
        """How many of the pids are not the workload's. 0 before a workload was named."""
        present = set(pids)
        self._read_roots()
        self._ours = {pid: is_own for pid, is_own in self._ours.items() if pid in present}
        if not self._roots:
            return 0
        for pid in present - self._ours.keys():
            self._ours[pid] = self._descends(pid)
        return sum(not self._ours[pid] for pid in present)

    def _read_roots(self) -> None:
        """Anew when the file has grown: a process may have been looked at before its root was
        named.
        """
        try:
            size = os.stat(self._path).st_size  # noqa: PTH116 - no pathlib in the sampler
            if size == self._size:
                return
            self._roots = frozenset(
                int(line) for line in procfs.read_once(self._path).split() if line.isdigit()
            )
        except OSError:
            return
        self._size = size
        self._ours = {pid: True for pid, is_own in self._ours.items() if is_own}

    def _descends(self, pid: int) -> bool:
        for _ in range(_DEEPEST):
            if pid in self._roots or pid == self._sampler:
                return True
            stat = procfs.process_stat(pid)
            if stat is None or stat.parent <= 1:
                return False
            pid = stat.parent
        return False
