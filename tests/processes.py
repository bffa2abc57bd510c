"""Other processes, as /proc shows them. A process may end at any time, also between two looks."""

from __future__ import annotations

from pathlib import Path


def gone(pid: int | str) -> bool:
    """Whether no process of that number runs; a zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def command_of(pid: int | str) -> bytes:
    """The command line of a process, empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
