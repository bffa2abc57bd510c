"""Which processes descend from one, from /proc."""

from __future__ import annotations

from pathlib import Path


def tree(root: int) -> list[int]:
    """The process and all that descend from it; parents stand before their children."""
    pids, pending = [], [root]
    while pending:
        pid = pending.pop()
        pids.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                pending += [int(child) for child in task.read_text().split()]
            except OSError:
                continue  # the thread ended between listing and reading
    return pids
