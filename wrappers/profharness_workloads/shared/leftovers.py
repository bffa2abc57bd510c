"""What a killed process of ours leaves outside of a run, in /dev/shm and in the folder for
temporary files, and how the next one finds it.

Names carry the process that made them: its pid namespace, its number and its start time, so that
neither a number that was given away again nor a container that shares the folder misleads. Who
makes such a name sweeps the old ones first, and says what it removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from typing import List

SHARED_MEMORY = "/dev/shm"
KEPT = "kept"  # a folder with this file in it is left to the user, with the words of a failure
_MARK = re.compile(r"profharness[-_][a-z]+[-_]p(\d+)n(\d+)s(\d+)[-_]")


def mark(pid: int) -> str:
    """A process by its number, its pid namespace and its start time, which no other one has."""
    return "p%dn%ds%s" % (pid, _namespace(), _start(pid))


def marked(kind: str, joint: str = "-") -> str:
    """The begin of a name for something of this kind that this process makes."""
    return joint.join(("profharness", kind, mark(os.getpid()), ""))


def temporary_folder(kind: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder that is removed at the end of this process, or at the next call by another one."""
    sweep(tempfile.gettempdir())
    return tempfile.TemporaryDirectory(prefix=marked(kind))


def sweep(folder: str) -> List[str]:
    """Remove what processes left there that no longer run; returns the paths, and names them on
    stderr.
    """
    removed = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    for name in names:
        found = _MARK.match(name)
        path = os.path.join(folder, name)
        if found and _is_left(path, *map(int, found.groups())) and _removed(path):
            removed.append(path)
    if removed:
        sys.stderr.write(
            "profharness: removed what a killed process left: %s\n" % ", ".join(removed)
        )
    return removed


def _is_left(path: str, pid: int, namespace: int, start: int) -> bool:
    """Whether it is ours, and its maker has ended, as far as can be seen from here."""
    try:
        own = os.lstat(path).st_uid == os.getuid()
    except OSError:
        return False
    if os.path.exists(os.path.join(path, KEPT)):
        return False
    return own and namespace == _namespace() and _start(pid) != str(start)


def _removed(path: str) -> bool:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        return False
    return True


def _namespace() -> int:
    """The number of our pid namespace; 0 where the kernel does not say."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _start(pid: int) -> str:
    """Clock ticks from boot to the start of a process, as text; "" when there is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
