"""The control group of the harness, which the workload inherits: memory charged, and time throttled
by a CPU quota.

Version 1 and 2 hierarchies may be mounted side by side; where a group's files are follows from
/proc/<pid>/cgroup and /proc/<pid>/mountinfo (cgroups(7), proc(5)), never from a customary path.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from profharness.telemetry.sources import SLOW_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.host import procfs


class Hierarchy(NamedTuple):
    """Mount point of the hierarchy and folder of the group in it; version 1 or 2."""

    version: int
    mount: str
    folder: str


class Quota(NamedTuple):
    """A cpu.stat file and the quota's period in ns."""

    path: str
    period_ns: int


class CgroupSource:
    """Memory and quota of the group of one process."""

    name = "cgroup"
    max_hz = SLOW_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, pid: int, proc: str = "/proc") -> None:
        self.columns: tuple[Column, ...] = ()
        self._pid = pid
        self._proc = proc
        self._memory: int | None = None
        self._throttled: int | None = None
        self._period_ns = 0

    def probe(self) -> tuple[Missing, ...]:
        """Find the control group's memory and quota files, of version 1 or 2."""
        try:
            groups = procfs.read_once(f"{self._proc}/{self._pid}/cgroup").decode()
            mounts = procfs.read_once(f"{self._proc}/{self._pid}/mountinfo").decode()
        except OSError as error:
            why = f"the control group of process {self._pid} cannot be read ({error.strerror})"
            return Missing("memory_cgroup", why), Missing("cpu_throttled", why)
        memory_missing = self._open_memory(find_hierarchy(groups, mounts, "memory"))
        quota_missing = self._open_quota(find_hierarchy(groups, mounts, "cpu"))
        columns = []
        if self._memory is not None:
            columns.append(Column("memory_cgroup", "B", "instant"))
        if self._throttled is not None:
            columns.append(Column("cpu_throttled", "share", "counter", 1e-9))
        self.columns = tuple(columns)
        return memory_missing + quota_missing

    def read(self, row: list[int | float], at: int) -> None:
        """Memory charged in bytes, then time throttled in ns; those of the two that were found."""
        if self._memory is not None:
            row[at] = int(os.pread(self._memory, 64, 0))
            at += 1
        if self._throttled is not None:
            row[at] = throttled_periods(os.pread(self._throttled, 1024, 0)) * self._period_ns

    def _open_memory(self, group: Hierarchy | str) -> tuple[Missing, ...]:
        if isinstance(group, str):
            return (Missing("memory_cgroup", group),)
        path = (
            f"{group.folder}/{'memory.current' if group.version == 2 else 'memory.usage_in_bytes'}"
        )
        self._memory = procfs.open_or_none(path)
        return (
            ()
            if self._memory is not None
            else (Missing("memory_cgroup", f"{path} is absent or not readable"),)
        )

    def _open_quota(self, group: Hierarchy | str) -> tuple[Missing, ...]:
        if isinstance(group, str):
            return (Missing("cpu_throttled", group),)
        quota = nearest_quota(group)
        if quota is None:
            return (Missing("cpu_throttled", f"no CPU quota is set on {group.folder} or above it"),)
        self._throttled = procfs.open_or_none(quota.path)
        self._period_ns = quota.period_ns
        return (
            ()
            if self._throttled is not None
            else (Missing("cpu_throttled", f"{quota.path} cannot be read"),)
        )


def find_hierarchy(groups: str, mounts: str, controller: str) -> Hierarchy | str:
    """Where `controller` governs the process, or why that is not known.

    `groups` and `mounts` are the texts of /proc/<pid>/cgroup and mountinfo. Version 1 is preferred
    where it has the controller, because version 2 does not have it then.
    """
    paths = {
        name: path
        for _, names, path in (line.split(":", 2) for line in groups.splitlines())
        for name in names.split(",")
    }
    version, path = (1, paths[controller]) if controller in paths else (2, paths.get("", ""))
    if not path:
        return f"the process is in no control group with the {controller} controller"
    seen = ""
    for line in mounts.splitlines():
        front, _, back = line.partition(" - ")
        if not _holds(back, version, controller):
            continue
        root, seen = (_unescape(text) for text in front.split(" ")[3:5])
        inside = _inside(path, root)
        if inside is not None:
            return Hierarchy(version, seen, seen + inside)
    if seen:
        return f"the group {path} lies outside of what is mounted at {seen}"
    return f"no cgroup hierarchy with the {controller} controller is mounted here"


def _holds(description: str, version: int, controller: str) -> bool:
    """Whether a mount, by the part of its mountinfo line after the dash, is the hierarchy of this
    controller.
    """
    kind, _, options = description.split(" ", 2)
    if version == 2:
        return kind == "cgroup2"
    return kind == "cgroup" and controller in options.split(" ")[-1].split(",")


def _inside(path: str, root: str) -> str | None:
    """`path` relative to the mount's `root`, with a leading slash, or empty; None when it lies
    elsewhere.
    """
    if root != "/":
        if path != root and not path.startswith(root + "/"):
            return None
        path = path[len(root) :]
    return None if path.startswith("/..") else path.rstrip("/")


def _unescape(text: str) -> str:
    """Blanks in mountinfo are octal escapes."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def nearest_quota(place: Hierarchy) -> Quota | None:
    """The group itself or the nearest one above it that has a CPU quota; None when none has."""
    folder = place.folder
    while True:
        period_us = _period_us(folder, place.version)
        if period_us is not None:
            return Quota(f"{folder}/cpu.stat", period_us * 1000)
        if len(folder) <= len(place.mount):
            return None
        folder = folder.rsplit("/", 1)[0]


def _period_us(folder: str, version: int) -> int | None:
    """The period of the folder's quota; None without quota (`max` in version 2, negative in version
    1).
    """
    try:
        if version == 2:
            quota, period = procfs.read_once(f"{folder}/cpu.max").decode().split()
            return None if quota == "max" else int(period)
        if int(procfs.read_once(f"{folder}/cpu.cfs_quota_us")) <= 0:
            return None
        return int(procfs.read_once(f"{folder}/cpu.cfs_period_us"))
    except (OSError, ValueError):
        return None


def throttled_periods(text: bytes) -> int:
    """`nr_throttled` of cpu.stat: quota periods in which the group was stopped. Raises
    ValueError.
    """
    for line in text.split(b"\n"):
        if line.startswith(b"nr_throttled "):
            return int(line.split()[1])
    raise ValueError("cpu.stat has no nr_throttled")
