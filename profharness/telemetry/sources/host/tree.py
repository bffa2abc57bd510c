"""Telemetry of the workload's process tree: CPU time, memory, number of processes, time spent
waiting for a CPU.
"""

from __future__ import annotations

import os
import resource
from time import monotonic_ns

from profharness.telemetry.sources import SLOW_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.host import procfs
from profharness.telemetry.sources.host.process_tree import ProcessTree


class TreeSource:
    """CPU time and number of processes, at the full rate. Its read brings the tree up to date for
    the others.
    """

    name = "tree"
    max_hz = 1000.0
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree

    def probe(self) -> tuple[Missing, ...]:
        """Whether the process tree can be followed; why not, otherwise."""
        if why := self._tree.why_not:
            return Missing("cpu_tree", why), Missing("processes_tree", why)
        self.columns = (
            Column("cpu_tree", "cores", "counter", 1e-9),
            Column("processes_tree", "processes", "instant"),
        )
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """CPU time of the tree in ns since the start, and the number of its processes."""
        row[at] = self._tree.refresh(monotonic_ns())
        row[at + 1] = self._tree.size


class TreeMemorySource:
    """Resident memory, at the slow rate: it costs a read per process."""

    name = "tree_memory"
    max_hz = SLOW_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree

    def probe(self) -> tuple[Missing, ...]:
        """Whether the process tree can be followed; why not, otherwise."""
        if why := self._tree.why_not:
            return (Missing("memory_tree", why),)
        self.columns = (Column("memory_tree", "B", "instant"),)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        row[at] = self._tree.resident_bytes()


class TreeWaitSource:
    """Time that threads were ready and waited for a CPU: field 2 of schedstat, which exists per
    thread only.
    """

    name = "tree_wait"
    max_hz = 1.0
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree
        self._threads: dict[tuple[int, str], _Thread] = {}
        self._listed: tuple[bytes, tuple[int, ...]] = (b"", ())
        self._ended_ns = 0
        self._max_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2

    def probe(self) -> tuple[Missing, ...]:
        """Whether the kernel tells how long each thread waited for a CPU."""
        if why := self._tree.why_not:
            return (Missing("cpu_tree_wait", why),)
        if not os.access("/proc/self/schedstat", os.R_OK):
            return (
                Missing(
                    "cpu_tree_wait", "the kernel has no /proc/<pid>/schedstat (CONFIG_SCHED_INFO)"
                ),
            )
        self.columns = (Column("cpu_tree_wait", "cores", "counter", 1e-9),)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """Time in ns that the tree's threads waited for a CPU; threads are listed anew only when a
        new process has appeared.
        """
        newest = (self._tree.newest_pid(), tuple(self._tree.processes))
        if (
            newest != self._listed or not newest[0]
        ):  # threads have pids too: without a new one there is none
            self._list()
            self._listed = newest
        for thread in self._threads.values():
            thread.read()
        row[at] = self._ended_ns + sum(
            thread.waited - thread.base for thread in self._threads.values()
        )

    def _list(self) -> None:
        """Follow the threads that there are now."""
        present = {(pid, tid) for pid in self._tree.processes for tid in procfs.thread_ids(pid)}
        for key in self._threads.keys() - present:
            self._drop(key)
        followed = {pid for pid, _ in self._threads}
        for pid, tid in present - self._threads.keys():
            thread = _Thread(pid, tid, keep_open=len(self._threads) < self._max_open)
            if pid not in followed and self._tree.processes[pid].base:
                thread.base = thread.waited  # the process is older than the run: so is this waiting
            self._threads[pid, tid] = thread

    def _drop(self, key: tuple[int, str]) -> None:
        thread = self._threads.pop(key)
        thread.close()
        self._ended_ns += thread.waited - thread.base


class _Thread:
    """One thread's waiting time in ns; `base` is the part from before the run."""

    __slots__ = ("_handle", "_path", "base", "waited")

    def __init__(self, pid: int, tid: str, *, keep_open: bool) -> None:
        self._path = f"/proc/{pid}/task/{tid}/schedstat"
        self._handle = procfs.open_or_none(self._path) if keep_open else None
        self.waited = 0
        self.base = 0
        self.read()

    def read(self) -> None:
        try:
            text = (
                procfs.read_once(self._path)
                if self._handle is None
                else os.pread(self._handle, 128, 0)
            )
            self.waited = max(self.waited, int(text.split()[1]))
        except (OSError, IndexError):
            return  # it ended: its last figure stays

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
