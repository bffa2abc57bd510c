"""The processes of a Triton server: itself, the stubs in which it runs Python, what those start.

Where the server is killed they end by themselves, unless they hang. Its lock file names them by
leftovers.mark, so that the next start can end them: their numbers may be given away again.
"""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from profharness_workloads.shared import leftovers

STUB = "triton_python_backend_stub"  # of which the kernel's own name keeps 15 characters
STUB_FOLDER = re.compile(
    r"/tmp/folder[A-Za-z0-9]{6}"
)  # where Triton puts a model that it was given over the network
# A helper of Python's: it removes the shared memory of processes that were killed, and then ends.
TRACKER = b"multiprocessing.resource_tracker"
TIDYING_S = 5.0
POLL_S = 0.01


def server_process() -> Optional[int]:
    """The tritonserver that this process started, or None."""
    for pid, parent, name, state in _processes():
        if parent == os.getpid() and name == "tritonserver" and state not in "ZX":
            return pid
    return None


def stubs(server: Optional[int]) -> List[int]:
    """The processes in which a server runs Python; what they start (memory keepers) ends with them
    and tidies up.
    """
    return [pid for pid, parent, name, _ in _processes() if parent == server and name == STUB[:15]]


def stub_folders(pids: Sequence[int]) -> List[str]:
    """The folders that Triton made for models' code; its stubs name them on their command lines."""
    folders: Set[str] = set()
    for pid in pids:
        words = _command(pid).decode("utf-8", "replace").split("\0")
        folders.update(match.group(0) for match in map(STUB_FOLDER.match, words) if match)
    return sorted(folders)


def marks(server: Optional[int]) -> List[str]:
    """The server's own mark and those of all processes below it, for its lock file."""
    below: Dict[int, List[int]] = {}
    for pid, parent, *_ in _processes():
        below.setdefault(parent, []).append(pid)
    found = [server] if server else []
    for pid in found:  # grows meanwhile
        found += below.get(pid, [])
    return [leftovers.mark(pid) for pid in found]


def end_what_is_left(workspace: str, marked: Sequence[str]) -> None:
    """Kill the processes of a server that has ended: those that run a program of its workspace, and
    those that were marked. Python's trackers may tidy up first.
    """

    def left() -> List[int]:
        return [
            pid
            for pid, _, _, state in _processes()
            if state not in "ZX"
            and (_program(pid).startswith(workspace + os.sep) or leftovers.mark(pid) in marked)
        ]

    kill([pid for pid in left() if TRACKER not in _command(pid)])
    _wait(lambda: not left())
    kill(left())


def kill(pids: Sequence[int]) -> None:
    """End processes that do not end by themselves."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it has ended


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIDYING_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _processes() -> Iterator[Tuple[int, int, str, str]]:
    """Number, parent, name and state (proc(5), /proc/pid/stat)."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="ascii", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
        except OSError:
            continue  # ended meanwhile
        fields = tail.split()
        yield int(entry), int(fields[1]), head.partition("(")[2], fields[0]


def _command(pid: int) -> bytes:
    """Its command line, each word closed by a zero; empty once it has ended."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _program(pid: int) -> str:
    try:
        return os.readlink("/proc/%d/exe" % pid).replace(" (deleted)", "")
    except OSError:
        return ""  # ended, or another user's
