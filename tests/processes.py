"""Other processes, as /proc shows them. A process may end at any time, also between two looks."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


def gone(pid: int | str) -> bool:
    """Whether no process of that number runs; a zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


@dataclass(frozen=True)
class Seen:
    """One process that ran when it was looked at. Its number may be given to another one later, as
    happens within minutes where tests start thousands; its start time tells them apart.
    """

    pid: int
    start: str
    command: str

    @property
    def runs(self) -> bool:
        return not gone(self.pid) and _start(self.pid) == self.start


def seen(pid: int) -> Seen:
    command = command_of(pid).decode("utf-8", "replace").replace("\0", " ").strip()
    return Seen(pid, _start(pid), command)


def naming(folder: Path) -> list[Seen]:
    """The processes whose command line names this folder."""
    name = str(folder).encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [seen(pid) for pid in pids if name in command_of(pid) and not gone(pid)]


def below(pid: int) -> list[Seen]:
    """The processes below one."""
    done = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    children = [int(word) for word in done.stdout.split()]
    return [one for child in children for one in (seen(child), *below(child))]


def all_end(processes: Iterable[Seen], seconds: float) -> None:
    """Wait for the end of processes; fails with the command lines of those that still run."""
    left, deadline = list(processes), time.monotonic() + seconds
    while left := [one for one in left if one.runs]:
        assert time.monotonic() < deadline, f"still run after {seconds} s: {left}"
        time.sleep(0.01)


def _start(pid: int) -> str:
    """Clock ticks from boot to its start (proc(5)); empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def command_of(pid: int | str) -> bytes:
    """The command line of a process, empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
