"""Telemetry of the workload's process tree: CPU time, memory, number of processes, time spent waiting for a CPU."""

from __future__ import annotations

import os
import resource
import time

from profharness.telemetry.sources import Column, Missing, SampledDevice, procfs
from profharness.telemetry.sources.process_tree import ProcessTree

MEMORY_NS = 100_000_000
_SPARE_FILES = 256  # descriptors left for everything that is not a thread's schedstat


class TreeSource:
    """CPU time at the full rate; memory at most ten times a second, since it costs a read per process."""

    name = "tree"
    max_hz = 1000.0
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree
        self._next_memory_ns = 0

    def probe(self) -> tuple[Missing, ...]:
        try:
            procfs.process_cpu_ns(os.getpid())
        except OSError as error:
            return (Missing("cpu_tree", f"the kernel gives no CPU clock of processes ({error.strerror})"),
                    Missing("memory_tree", "needs cpu_tree"), Missing("processes_tree", "needs cpu_tree"))
        self.columns = (Column("cpu_tree", "cores", "counter", 1e-9), Column("processes_tree", "processes", "instant"),
                        Column("memory_tree", "B", "instant"))
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        now = time.monotonic_ns()
        self._tree.refresh(now)
        row[at] = self._tree.cpu_ns()
        row[at + 1] = len(self._tree.processes)
        if now >= self._next_memory_ns:
            self._next_memory_ns = now + MEMORY_NS
            row[at + 2] = self._tree.resident_bytes()


class TreeWaitSource:
    """Time that threads were ready and waited for a CPU: field 2 of schedstat, which exists per thread only."""

    name = "tree_wait"
    max_hz = 1.0
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree
        self._threads: dict[tuple[int, str], _Thread] = {}
        self._ended_ns = 0
        self._max_open = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FILES, 0)

    def probe(self) -> tuple[Missing, ...]:
        if not os.path.exists("/proc/self/schedstat"):
            return (Missing("cpu_tree_wait", "the kernel has no /proc/<pid>/schedstat (CONFIG_SCHED_INFO)"),)
        self.columns = (Column("cpu_tree_wait", "cores", "counter", 1e-9),)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        present = {(pid, tid) for pid in self._tree.processes for tid in procfs.thread_ids(pid)}
        for key in self._threads.keys() - present:
            self._drop(key)
        for key in present - self._threads.keys():
            self._threads[key] = _Thread(*key, keep_open=len(self._threads) < self._max_open)
        for thread in self._threads.values():
            thread.read()
        row[at] = self._ended_ns + sum(thread.waited - thread.base for thread in self._threads.values())

    def _drop(self, key: tuple[int, str]) -> None:
        thread = self._threads.pop(key)
        thread.close()
        self._ended_ns += thread.waited - thread.base


class _Thread:
    """One thread's waiting time in ns; `base` is what it had waited when it was first seen."""

    __slots__ = ("_handle", "_path", "base", "waited")

    def __init__(self, pid: int, tid: str, *, keep_open: bool) -> None:
        self._path = f"/proc/{pid}/task/{tid}/schedstat"
        self._handle = procfs.open_or_none(self._path) if keep_open else None
        self.waited = 0
        self.read()
        self.base = self.waited

    def read(self) -> None:
        try:
            text = procfs.read_once(self._path) if self._handle is None else os.pread(self._handle, 128, 0)
            self.waited = max(self.waited, int(text.split()[1]))
        except (OSError, IndexError):
            return  # it ended: its last figure stays

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
