"""Small readers of /proc: one system call each where a file is read again and again."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_CPUCLOCK_SCHED = 2


class ProcessStat(NamedTuple):
    """From /proc/<pid>/stat: `reaped_ns` is the CPU time of descendants that were waited for (10 ms
    steps).
    """

    state: str
    parent: int
    start_boot_ns: int
    reaped_ns: int


def process_clock(pid: int) -> int:
    """The id of the clock that counts the CPU time of all threads of a process, as
    clock_getcpuclockid(3) forms it.
    """
    return (~pid << 3) | _CPUCLOCK_SCHED


def process_cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, ended ones too, in ns. Raises OSError when it is gone.

    A thread that is running now counts up to its last scheduler tick (1 to 10 ms ago).
    """
    return time.clock_gettime_ns(process_clock(pid))


def open_or_none(path: str) -> int | None:
    """A file descriptor for reading; None when the file is not there or not allowed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def read_once(path: str, offset: int = 0) -> bytes:
    """At most 64 KiB of the file from `offset` on. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, 65536, offset)
    finally:
        os.close(handle)


def parse_stat(text: bytes) -> ProcessStat:
    """The command name may hold spaces and parentheses: fields are counted from its last
    parenthesis (proc(5)).
    """
    rest = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        rest[0].decode(),
        int(rest[1]),
        int(rest[19]) * TICK_NS,
        (int(rest[13]) + int(rest[14])) * TICK_NS,
    )


def process_stat(pid: int) -> ProcessStat | None:
    """None when the process is gone."""
    try:
        return parse_stat(read_once(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


def thread_ids(pid: int) -> list[str]:
    """Empty when the process is gone."""
    try:
        # once a second per process: no objects for it
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  no objects: called often
    except OSError:
        return []


def children_of_thread(pid: int, tid: str) -> list[int]:
    """Pids whose parent is this thread; empty when it is gone."""
    try:
        return [int(child) for child in read_once(f"/proc/{pid}/task/{tid}/children").split()]
    except OSError:
        return []


def children_by_scan() -> dict[int, list[int]]:
    """Children of every process, from one pass over /proc: for kernels without the `children`
    files.
    """
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - once a second: no objects for it
        if name.isdigit() and (stat := process_stat(int(name))):
            children.setdefault(stat.parent, []).append(int(name))
    return children
