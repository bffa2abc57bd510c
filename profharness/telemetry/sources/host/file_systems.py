"""Bytes of network file systems: what Lustre's client counted (root alone may read it on most
systems), what NFS mounts counted, and what the processes' own calls moved, which a user can always
read.
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import SLOW_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.cost import affordable_hz
from profharness.telemetry.sources.host import lctl, procfs
from profharness.telemetry.sources.host.process_tree import ProcessTree

LUSTRE = ("lustre_read", "lustre_written", "lustre_calls")
NFS = ("nfs_read", "nfs_written")
TREE = ("tree_read", "tree_written")
_CLOSED = "needs root"
_LCTL_HZ = 0.2  # each read starts a process, whose CPU time is not that of the sampler's thread
_MOST = 4  # Lustre file systems with columns of their own; the totals hold all
_STATS_BYTES = 1 << 16
_MOUNTS_BYTES = 1 << 22
_SERVER_READ, _SERVER_WRITTEN = 4, 5  # places among the numbers behind `bytes:` of a mount


class LustreSource:
    """Each mounted Lustre file system by its client's `stats` (`llite`), in the first place that
    has them: /proc up to Lustre 2.11, since then debugfs, whose folder is closed to users. There
    lctl is asked, once, and at every read if it answers.
    """

    name = "lustre"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys", proc: str = "/proc") -> None:
        self.max_hz = SLOW_HZ
        self.columns: tuple[Column, ...] = ()
        self._places = (
            f"{proc}/fs/lustre/llite",
            f"{sysfs}/kernel/debug/lustre/llite",
            f"{sysfs}/fs/lustre/llite",
        )
        self._debug = f"{sysfs}/kernel/debug"
        self._mounts = f"{proc}/mounts"
        self._handles: list[int] = []
        self._lctl = ""
        self._asked: tuple[bytes, ...] = ()
        self._own = 0

    def probe(self) -> tuple[Missing, ...]:
        """Open the stats of every mount, or say why they cannot be read."""
        names: list[str] = []
        for place in self._places:
            for name in _listed(place):
                handle = procfs.open_or_none(f"{place}/{name}/stats")
                if handle is not None:
                    self._handles.append(handle)
                    names.append(name.partition("-")[0])
            if names:
                break
        why = "" if names else self._why()
        if why.startswith(_CLOSED):
            names = self._names_by_lctl()
        if not names:
            return tuple(Missing(metric, why) for metric in LUSTRE)
        self._own = min(len(names), _MOST) if len(names) > 1 else 0
        kinds = [*LUSTRE, *(f"{kind}:{name}" for name in names[: self._own] for kind in LUSTRE)]
        self.columns = tuple(
            Column(kind, "calls/s" if kind.startswith(LUSTRE[2]) else "B/s", "counter")
            for kind in kinds
        )
        self.max_hz = _LCTL_HZ if self._lctl else affordable_hz(self, SLOW_HZ)
        return ()

    def _names_by_lctl(self) -> list[str]:
        """The file systems that lctl tells of without root; it is asked for them from now on."""
        program = lctl.find_lctl()
        if not program:
            return []
        try:
            self._asked = tuple(lctl.ask(program))
        except OSError:
            return []
        self._lctl = program
        return [name.partition(b"-")[0].decode(errors="replace") for name in self._asked]

    def _why(self) -> str:
        try:
            with open(  # noqa: PTH123  no pathlib in the sampler
                self._mounts, encoding="utf-8", errors="replace"
            ) as file:
                mounted = any(" lustre " in line for line in file)
        except OSError:
            mounted = False
        if not mounted:
            return "no Lustre file system is mounted here"
        if not os.access(self._debug, os.R_OK | os.X_OK):
            return (
                f"{_CLOSED}: the client's counters lie in {self._debug}, which root alone may "
                "read, and lctl get_param gives none; tree_read and tree_written count the calls "
                "of the workload's processes"
            )
        return f"none of {', '.join(self._places)} holds the client's counters"

    def read(self, row: list[int | float], at: int) -> None:
        """Raises OSError where a file system was unmounted: without it a total would fall."""
        if self._lctl:
            texts = lctl.ask(self._lctl)
            if tuple(texts) != self._asked:
                raise OSError(0, "lctl names other file systems than before")
            counts = [parsed_stats(text) for text in texts.values()]
        else:
            counts = [parsed_stats(os.pread(handle, _STATS_BYTES, 0)) for handle in self._handles]
        values = [sum(one[place] for one in counts) for place in range(len(LUSTRE))]
        for one in counts[: self._own]:
            values += one
        row[at : at + len(values)] = values


def parsed_stats(text: bytes) -> tuple[int, int, int]:
    """Bytes read, bytes written and calls of a client's `stats`. Lines that are absent count 0.

    `read_bytes 3 samples [bytes] 4096 1048576 2101248 ...` ends in the least, the most, the sum
    (and the sum of squares); other lines count calls: `open 12 samples [usecs] ...`.
    """
    read = written = calls = 0
    for line in text.split(b"\n"):
        words = line.split()
        if len(words) < 4 or words[2] != b"samples" or not words[1].isdigit():
            continue
        if words[3] != b"[bytes]":
            calls += int(words[1])
        elif len(words) > 6 and words[6].isdigit():
            if words[0] == b"read_bytes":
                read = int(words[6])
            elif words[0] == b"write_bytes":
                written = int(words[6])
    return read, written, calls


class NfsSource:
    """Bytes between this node and its NFS servers, over all mounts (/proc/self/mountstats)."""

    name = "nfs"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, path: str = "/proc/self/mountstats") -> None:
        self.max_hz = SLOW_HZ
        self.columns: tuple[Column, ...] = ()
        self._path = path
        self._handle: int | None = None

    def probe(self) -> tuple[Missing, ...]:
        """Whether there is an NFS mount."""
        self._handle = procfs.open_or_none(self._path)
        if self._handle is None:
            return tuple(Missing(metric, f"{self._path} cannot be read") for metric in NFS)
        if not nfs_mounts(_whole(self._handle)):
            return tuple(Missing(metric, "no NFS is mounted here") for metric in NFS)
        self.columns = tuple(Column(metric, "B/s", "counter") for metric in NFS)
        self.max_hz = affordable_hz(self, SLOW_HZ)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """A mount that went away makes the total fall: that interval has no value then."""
        assert self._handle is not None
        mounts = nfs_mounts(_whole(self._handle)).values()
        row[at] = sum(read for read, _ in mounts)
        row[at + 1] = sum(written for _, written in mounts)


def _whole(handle: int) -> bytes:
    """The file from its begin: procfs gives a page or so at a time."""
    parts: list[bytes] = []
    at = 0
    while at < _MOUNTS_BYTES and (part := os.pread(handle, _MOUNTS_BYTES - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def nfs_mounts(text: bytes) -> dict[tuple[bytes, bytes], tuple[int, int]]:
    """Bytes read from and written to the server, by device and counters: an export that is mounted
    at several places has one set of counters, and counts once.
    """
    found: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    device = b""
    for line in text.split(b"\n"):
        words = line.split()
        if line.startswith(b"device "):
            kind = words[words.index(b"fstype") + 1] if b"fstype" in words[:-1] else b""
            device = words[1] if kind in (b"nfs", b"nfs4") else b""
        elif device and words[:1] == [b"bytes:"] and len(words) > _SERVER_WRITTEN + 1:
            numbers = words[1:]
            read, written = numbers[_SERVER_READ], numbers[_SERVER_WRITTEN]
            if read.isdigit() and written.isdigit():
                found[device, b" ".join(numbers)] = int(read), int(written)
    return found


class TreeFilesSource:
    """Bytes that the calls of the workload's processes read and wrote (/proc/<pid>/io: rchar,
    wchar), whatever the file system; pipes and terminals are in it, mapped files are not.
    """

    name = "tree_files"
    max_hz = 1.0
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, tree: ProcessTree) -> None:
        self.columns: tuple[Column, ...] = ()
        self._tree = tree
        self._bases: dict[int, tuple[int, int]] = {}
        self._most = (0, 0)

    def probe(self) -> tuple[Missing, ...]:
        """Whether the kernel keeps such accounts (CONFIG_TASK_IO_ACCOUNTING)."""
        why = self._tree.why_not
        if not why and _moved("self") is None:
            why = "/proc/<pid>/io cannot be read here"
        if why:
            return tuple(Missing(metric, why) for metric in TREE)
        self.columns = tuple(Column(metric, "B/s", "counter") for metric in TREE)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """A parent's account takes over that of a child that it waited for. Until then the child's
        bytes are in no account, so that the highest sum so far stands.
        """
        for pid in self._bases.keys() - self._tree.processes.keys():
            del self._bases[pid]
        read = written = 0
        for pid, process in list(self._tree.processes.items()):
            moved = _moved(str(pid))
            if moved is None:
                continue
            if pid not in self._bases:  # what it moved before it was followed is not the run's
                self._bases[pid] = moved if process.base else (0, 0)
            base = self._bases[pid]
            read, written = read + moved[0] - base[0], written + moved[1] - base[1]
        self._most = max(self._most[0], read), max(self._most[1], written)
        row[at], row[at + 1] = self._most


def _moved(pid: str) -> tuple[int, int] | None:
    """What calls of a process read and wrote (rchar, wchar); None where it is gone or another's."""
    try:
        fields = procfs.read_once(f"/proc/{pid}/io").split()
        return int(fields[1]), int(fields[3])
    except (OSError, ValueError, IndexError):
        return None


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return []
