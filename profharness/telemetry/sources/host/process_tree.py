"""The processes that descend from the workload's roots, and the CPU time that they used.

New processes are noticed within 0.1 s where a known process's main thread forked them, and within 1
s otherwise; nothing is looked at while the kernel has given out no new pid. What ends between two
looks is not lost: a parent's own account of the children that it waited for shows the CPU time that
was never seen, and is added to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from time import clock_gettime_ns

from profharness.telemetry.sources.host import procfs

QUICK_NS = (
    90_000_000  # a little less than a tenth of a second, so that it is due at every tick of 10 Hz
)
FULL_NS = 1_000_000_000
_BIRTH_SLACK_NS = 50_000_000  # start times come in 10 ms steps, and a look takes a moment


class Process:
    """A followed process. All figures are ns of CPU time and only grow.

    `base` was used before it was followed; `seen` is what ended children had used when last looked
    at; `unseen` is what this process was credited for children beyond that.
    """

    __slots__ = (
        "base",
        "children_fd",
        "clock",
        "cpu",
        "parent",
        "pid",
        "reaped_base",
        "seen",
        "start_boot_ns",
        "stat_fd",
        "statm_fd",
        "unseen",
    )

    def __init__(self, pid: int, stat: procfs.ProcessStat, *, started_before: bool) -> None:
        self.pid = pid
        self.parent = stat.parent
        self.start_boot_ns = stat.start_boot_ns
        self.clock = procfs.process_clock(pid)
        self.cpu = time.clock_gettime_ns(self.clock)
        self.base = self.cpu if started_before else 0
        self.reaped_base = stat.reaped_ns if started_before else 0
        self.seen = 0
        self.unseen = 0
        self.children_fd = procfs.open_or_none(f"/proc/{pid}/task/{pid}/children")
        self.statm_fd = procfs.open_or_none(f"/proc/{pid}/statm")
        self.stat_fd = procfs.open_or_none(f"/proc/{pid}/stat")

    def stat(self) -> procfs.ProcessStat | None:
        """None when it is gone: its open file then fails, whoever has its pid now."""
        if self.stat_fd is None:
            return procfs.process_stat(self.pid)
        try:
            return procfs.parse_stat(os.pread(self.stat_fd, 4096, 0))
        except (OSError, ValueError):
            return None

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
        for handle in (self.children_fd, self.stat_fd, self.statm_fd):
            if handle is not None:
                os.close(handle)


class ProcessTree:
    """Follows the pids named in `roots_file` (one per line) and all their descendants."""

    def __init__(self, roots_file: str) -> None:
        self.processes: dict[int, Process] = {}
        self.size = 0
        self.why_not = _why_not()
        self.has_children_files = os.access(
            f"/proc/{os.getpid()}/task/{os.getpid()}/children", os.R_OK
        )
        self._roots_file = roots_file
        self._roots_fd: int | None = None
        self._roots_read = 0
        self._has_ended = False  # since the last full look
        self._ended_ns = self._offset_ns = 0
        self._arranged: tuple[Process, ...] = ()
        self._clocks: list[int] = []
        self._used_ns: list[int] = []
        self._asleep_at: list[int] = []  # the clocks at the last look for a new pid
        self._pids_fd = procfs.open_or_none("/proc/loadavg")
        self._pids_quick = self._pids_full = b""
        self._next_quick_ns = self._next_full_ns = 0
        self._looked_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def refresh(self, now_ns: int) -> int:
        """CPU time in ns of the tree since it was followed, which never falls; looks for new
        processes when it is time to (`now_ns`: CLOCK_MONOTONIC).
        """
        self._read()
        if now_ns >= self._next_quick_ns:
            self._next_quick_ns = now_ns + QUICK_NS
            if now_ns >= self._next_full_ns:
                self._next_full_ns = now_ns + FULL_NS
                self._look(full=True)
            elif self._is_news():
                self._look(full=False)
        return self._offset_ns + sum(self._used_ns)

    def _read(self) -> None:
        """All clocks, by one call in C: this is what every tick pays for."""
        try:
            self._used_ns = list(map(clock_gettime_ns, self._clocks))
        except OSError:
            self._drop_ended()

    def resident_bytes(self) -> int:
        """Sum of the resident sets; a page that two processes share counts twice."""
        pages = 0
        for process in self.processes.values():
            if process.statm_fd is not None:
                try:
                    pages += int(os.pread(process.statm_fd, 128, 0).split(None, 2)[1])
                except (OSError, IndexError):
                    continue  # it ended since: the next refresh will say so
        return pages * procfs.PAGE_BYTES

    def _drop_ended(self) -> None:
        """Some process is gone: read one by one. What the refresh before saw of it stays."""
        self._keep()
        ended = []
        for process in self.processes.values():
            try:
                process.cpu = time.clock_gettime_ns(process.clock)
            except OSError:
                ended.append(process)
        for process in ended:
            self._end(process)
        self._arrange()

    def _keep(self) -> None:
        """Note the figures of the last refresh in the processes themselves."""
        for process, cpu in zip(self._arranged, self._used_ns, strict=True):
            process.cpu = cpu

    def _arrange(self) -> None:
        """Prepare the refreshes: all clocks in a row, and what is to be added to the sum of their
        readings.
        """
        self._arranged = tuple(self.processes.values())
        self.size = len(self._arranged)
        self._clocks = [process.clock for process in self._arranged]
        self._used_ns = [process.cpu for process in self._arranged]
        self._offset_ns = self._ended_ns + sum(
            process.unseen - process.base for process in self._arranged
        )

    def _is_news(self) -> bool:
        """Whether the roots file grew, or a followed process ran and a pid was given out since the
        last look: else there is nothing to look at.
        """
        if self._used_ns != self._asleep_at:  # who did not run forked nobody
            self._asleep_at = self._used_ns
            if self.newest_pid() != self._pids_quick or not self._pids_quick:
                return True
        return bool(self._new_roots())

    def _look(self, *, full: bool) -> None:
        self._keep()
        self._find(full=full)
        self._arrange()
        self._read()

    def _find(self, *, full: bool) -> None:
        looked = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._read_roots()
        newest = self.newest_pid()
        if full:
            if newest != self._pids_full or not newest or self._has_ended:
                self._has_ended = False
                # without a new pid or an end nothing was waited for, and no pid has passed to
                # another
                self._recheck()
            if newest != self._pids_full or not newest:
                self._walk(self._all_children())
                self._pids_full = self._pids_quick = newest
            self._looked_boot_ns = looked
        elif newest != self._pids_quick and self.has_children_files:
            self._walk(self._main_thread_children())
            self._pids_quick = newest

    def newest_pid(self) -> bytes:
        """The last pid or thread id that the kernel gave out (fifth field of /proc/loadavg); empty
        where it does not say.
        """
        return (
            os.pread(self._pids_fd, 128, 0).rpartition(b" ")[2]
            if self._pids_fd is not None
            else b""
        )

    def _new_roots(self) -> bytes:
        """What was appended to the roots file since it was read."""
        if self._roots_fd is None:
            self._roots_fd = procfs.open_or_none(self._roots_file)
        return b"" if self._roots_fd is None else os.pread(self._roots_fd, 65536, self._roots_read)

    def _read_roots(self) -> None:
        """New whole lines of the roots file; a line that is still being written waits."""
        text = self._new_roots()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole:
            return
        for line in whole.split():
            if line.isdigit():
                self._follow(int(line))
        self._roots_read += len(whole)
        self._pids_full = self._pids_quick = (
            b""  # its children may be older than the newest pid that was seen
        )

    def _recheck(self) -> None:
        """Drop processes whose pid was given to another; take over new parents and the accounts of
        waited-for children.
        """
        stats: list[tuple[Process, procfs.ProcessStat]] = []
        for process in tuple(self.processes.values()):
            stat = process.stat()
            if stat is None or stat.start_boot_ns != process.start_boot_ns:
                self._end(process)
            else:
                process.parent = stat.parent
                stats.append((process, stat))
        children: dict[int, list[Process]] = {}
        for process, _ in stats:
            children.setdefault(process.parent, []).append(process)
        for process, stat in stats:
            _settle(process, stat, children.get(process.pid, ()))

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
        return [
            child for tid in procfs.thread_ids(pid) for child in procfs.children_of_thread(pid, tid)
        ]

    def _all_children(self) -> dict[int, list[int]]:
        if not self.has_children_files:
            return procfs.children_by_scan()
        return {pid: self._children(pid) for pid in self.processes}

    def _main_thread_children(self) -> dict[int, list[int]]:
        children = {}
        for process in self.processes.values():
            if process.children_fd is not None:
                try:
                    children[process.pid] = [
                        int(child) for child in os.pread(process.children_fd, 65536, 0).split()
                    ]
                except OSError:
                    continue  # it ended since: the next refresh will say so
        return children

    def _follow(self, pid: int) -> bool:
        """False when the process is gone. CPU time from before the last full look is not the
        workload's news.
        """
        stat = procfs.process_stat(pid)
        if stat is None or pid in self.processes:
            return False
        try:
            self.processes[pid] = Process(
                pid,
                stat,
                started_before=stat.start_boot_ns < self._looked_boot_ns - _BIRTH_SLACK_NS,
            )
        except OSError:
            return False  # it ended between the two reads
        return True

    def _end(self, process: Process) -> None:
        """Keep its last figures, and let its parent's account show what it used after them."""
        if self.processes.pop(process.pid, None) is None:
            return
        process.close()
        self._has_ended = True
        self._ended_ns += process.used()
        parent = self.processes.get(process.parent)
        if parent is not None:
            parent.seen += process.whole()
            _settle(
                parent,
                parent.stat(),
                [child for child in self.processes.values() if child.parent == parent.pid],
            )


def _settle(process: Process, stat: procfs.ProcessStat | None, children: Sequence[Process]) -> None:
    """Credit a process for the children that it waited for, by its account `stat`, just read.

    Only where those that are followed still live after its account was read: the account would hold
    one that just ended, whose time is counted as its own, and it would count twice.
    """
    if stat is None:
        return
    try:
        for child in children:
            time.clock_gettime_ns(child.clock)
    except OSError:
        return  # its end, which is noticed at the next refresh, settles this
    process.credit(stat)


def _why_not() -> str:
    """Empty where the CPU clocks of processes can be read."""
    try:
        procfs.process_cpu_ns(os.getpid())
    except OSError as error:
        return f"the kernel gives no CPU clock of processes ({error.strerror})"
    return ""
