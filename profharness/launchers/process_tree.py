"""Which processes descend from one, and how they are ended.

`tree` looks at every process of the node (about 10 µs each, `psutil` has no other way), so it is
meant for a look per second. The sampler, which looks more often, follows processes by itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil  # imported where it is used: what starts no process does not wait for it


def tree(root: int) -> list[psutil.Process]:
    """The process and all that descend from it, those that ended without being waited for
    included; parents stand before their children. Empty where there is no such process.
    """
    import psutil

    try:
        first = psutil.Process(root)
        try:
            return [first, *first.children(recursive=True)]
        except (psutil.AccessDenied, PermissionError):  # the latter in older versions of psutil
            return _visible(first)
    except psutil.NoSuchProcess:
        return []


def leaves(root: int) -> list[psutil.Process]:
    """Those processes of the tree that have no child."""
    import psutil

    family, parents = tree(root), set()
    for process in family:
        try:
            parents.add(process.ppid())
        except psutil.Error:
            continue  # it ended in the meantime
    return [process for process in family if process.pid not in parents]


def kill(process: psutil.Process) -> None:
    """SIGKILL; nothing happens where it ended, even if another process has its number by now."""
    import psutil

    try:
        process.kill()
    except psutil.Error:
        pass  # nothing is left to kill, or it is another user's


def _visible(root: psutil.Process) -> list[psutil.Process]:
    """The same where the node hides what other users run (`hidepid=1`), at which psutil's own
    walk stops.
    """
    import psutil

    children: dict[int, list[psutil.Process]] = defaultdict(list)
    for pid in psutil.pids():
        try:
            process = psutil.Process(pid)
            children[process.ppid()].append(process)
        except psutil.Error:
            continue
    family = [root]
    for process in family:  # grows as it goes
        family += children[process.pid]
    return family
