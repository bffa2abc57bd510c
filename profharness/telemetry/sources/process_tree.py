"""The processes that descend from the workload's roots, and the CPU time that they used.

New processes are noticed within 0.1 s where a known process's main thread forked them, and within 1 s otherwise;
nothing is looked at while the kernel has given out no new pid. What ends between two looks is not lost: a parent's
own account of the children that it waited for shows the CPU time that was never seen, and is added to it.
"""

from __future__ import annotations

import os
import time

from profharness.telemetry.sources import procfs

QUICK_NS = 90_000_000  # a little less than a tenth of a second, so that it is due at each tick of 10 Hz
FULL_NS = 1_000_000_000
_BIRTH_SLACK_NS = 50_000_000  # start times come in 10 ms steps, and a look takes a moment


class Process:
    """A followed process. All figures are ns of CPU time and only grow.

    `base` was used before it was followed; `seen` is what ended children had used when last looked at; `unseen` is what
    this process was credited for children beyond that.
    """

    __slots__ = ("base", "children_fd", "cpu", "parent", "pid", "reaped_base", "seen", "start_boot_ns", "statm_fd", "unseen")

    def __init__(self, pid: int, stat: procfs.ProcessStat, *, started_before: bool) -> None:
        self.pid = pid
        self.parent = stat.parent
        self.start_boot_ns = stat.start_boot_ns
        self.cpu = procfs.process_cpu_ns(pid)
        self.base = self.cpu if started_before else 0
        self.reaped_base = stat.reaped_ns if started_before else 0
        self.seen = 0
        self.unseen = 0
        self.children_fd = procfs.open_or_none(f"/proc/{pid}/task/{pid}/children")
        self.statm_fd = procfs.open_or_none(f"/proc/{pid}/statm")

    def used(self) -> int:
        """CPU time since it was followed, with that of short-lived children."""
        return self.cpu - self.base + self.unseen

    def whole(self) -> int:
        """CPU time since its birth, as its parent will be credited for it."""
        return self.cpu + self.reaped_base + self.seen + self.unseen

    def credit(self, stat: procfs.ProcessStat) -> None:
        """Take over the kernel's account of the children that it waited for."""
        self.unseen = max(self.unseen, stat.reaped_ns - self.reaped_base - self.seen)

    def close(self) -> None:
        for handle in (self.children_fd, self.statm_fd):
            if handle is not None:
                os.close(handle)


class ProcessTree:
    """Follows the pids named in `roots_file` (one per line) and all their descendants."""

    def __init__(self, roots_file: str) -> None:
        self.processes: dict[int, Process] = {}
        self.why_not = _why_not()
        self.has_children_files = os.access(f"/proc/{os.getpid()}/task/{os.getpid()}/children", os.R_OK)
        self._roots_file = roots_file
        self._roots_read = 0
        self._ended_ns = 0
        self._pids_fd = procfs.open_or_none("/proc/loadavg")
        self._pids_quick = self._pids_full = b""
        self._next_quick_ns = self._next_full_ns = 0
        self._looked_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def refresh(self, now_ns: int) -> None:
        """Read every process's CPU time; look for new processes when it is time to (`now_ns`: CLOCK_MONOTONIC)."""
        if now_ns >= self._next_quick_ns:
            self._next_quick_ns = now_ns + QUICK_NS
            self._look(full=now_ns >= self._next_full_ns)
            if now_ns >= self._next_full_ns:
                self._next_full_ns = now_ns + FULL_NS
        ended = []
        for process in self.processes.values():
            try:
                process.cpu = procfs.process_cpu_ns(process.pid)
            except OSError:
                ended.append(process)
        for process in ended:
            self._end(process)

    def cpu_ns(self) -> int:
        """CPU time of the tree since it was followed. Never falls."""
        return self._ended_ns + sum(process.used() for process in self.processes.values())

    def resident_bytes(self) -> int:
        """Sum of the resident sets; a page that two processes share counts twice."""
        pages = 0
        for process in self.processes.values():
            if process.statm_fd is not None:
                try:
                    pages += int(os.pread(process.statm_fd, 128, 0).split()[1])
                except (OSError, IndexError):
                    continue  # it ended since: the next refresh will say so
        return pages * procfs.PAGE_BYTES

    def _look(self, *, full: bool) -> None:
        looked = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._read_roots()
        newest = self._newest_pid()
        if full:
            self._recheck()
            if newest != self._pids_full or not newest:
                self._walk(self._all_children())
                self._pids_full = self._pids_quick = newest
            self._looked_boot_ns = looked
        elif newest != self._pids_quick and self.has_children_files:
            self._walk(self._main_thread_children())
            self._pids_quick = newest

    def _newest_pid(self) -> bytes:
        """The last pid or thread id that the kernel gave out (fifth field of /proc/loadavg)."""
        return os.pread(self._pids_fd, 128, 0).split()[-1] if self._pids_fd is not None else b""

    def _read_roots(self) -> None:
        """New whole lines of the roots file; a line that is still being written waits."""
        try:
            if os.stat(self._roots_file).st_size <= self._roots_read:  # noqa: PTH116 - ten times a second: no objects for it
                return
            text = procfs.read_once(self._roots_file, self._roots_read)
        except OSError:
            return  # not written yet
        whole = text[:text.rfind(b"\n") + 1]
        for line in whole.split():
            if line.isdigit():
                self._follow(int(line))
        self._roots_read += len(whole)
        self._pids_full = self._pids_quick = b""  # its children may be older than the newest pid that was seen

    def _recheck(self) -> None:
        """Drop processes whose pid was given to another; take over new parents and the accounts of waited-for children."""
        for process in tuple(self.processes.values()):
            stat = procfs.process_stat(process.pid)
            if stat is None or stat.start_boot_ns != process.start_boot_ns:
                self._end(process)
            else:
                process.parent = stat.parent
                process.credit(stat)

    def _walk(self, children: dict[int, list[int]]) -> None:
        """Follow the descendants that `children` names, and all of theirs."""
        waiting = [child for pid in tuple(self.processes) for child in children.get(pid, ())]
        while waiting:
            pid = waiting.pop()
            if pid not in self.processes and self._follow(pid):
                waiting += children[pid] if pid in children else self._children(pid)

    def _children(self, pid: int) -> list[int]:
        if not self.has_children_files:
            return []
        return [child for tid in procfs.thread_ids(pid) for child in procfs.children_of_thread(pid, tid)]

    def _all_children(self) -> dict[int, list[int]]:
        if not self.has_children_files:
            return procfs.children_by_scan()
        return {pid: self._children(pid) for pid in self.processes}

    def _main_thread_children(self) -> dict[int, list[int]]:
        found = {}
        for process in self.processes.values():
            if process.children_fd is not None:
                try:
                    found[process.pid] = [int(child) for child in os.pread(process.children_fd, 65536, 0).split()]
                except OSError:
                    continue  # it ended since: the next refresh will say so
        return found

    def _follow(self, pid: int) -> bool:
        """False when the process is gone. CPU time from before the last full look is not the workload's news."""
        stat = procfs.process_stat(pid)
        if stat is None or pid in self.processes:
            return False
        try:
            self.processes[pid] = Process(
                pid, stat, started_before=stat.start_boot_ns < self._looked_boot_ns - _BIRTH_SLACK_NS)
        except OSError:
            return False  # it ended between the two reads
        return True

    def _end(self, process: Process) -> None:
        """Keep its last figures, and let its parent's account show what it used after them."""
        if self.processes.pop(process.pid, None) is None:
            return
        process.close()
        self._ended_ns += process.used()
        parent = self.processes.get(process.parent)
        if parent is not None:
            parent.seen += process.whole()
            if stat := procfs.process_stat(parent.pid):
                parent.credit(stat)


def _why_not() -> str:
    """Empty where the CPU clocks of processes can be read."""
    try:
        procfs.process_cpu_ns(os.getpid())
    except OSError as error:
        return f"the kernel gives no CPU clock of processes ({error.strerror})"
    return ""
