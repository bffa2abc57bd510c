"""Which process makes a run, and whether it still does: a killed harness leaves a manifest that
says `running` for ever.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Protocol

from profharness.rundir.manifest import HarnessRecord, RunState

# field 22 of /proc/<pid>/stat, counted from the state, which follows the name (proc_pid_stat(5))
_START = 19


def identify() -> HarnessRecord:
    """The process that calls this."""
    return HarnessRecord(
        pid=os.getpid(),
        host=socket.gethostname(),
        boot_id=_boot_id(),
        start_ticks=_start_ticks(os.getpid()) or 0,
        namespace=_namespace(),
    )


def is_gone(record: HarnessRecord) -> bool | None:
    """Whether that process has ended; None where this machine cannot tell (another node, another
    container).
    """
    if record.boot_id != _boot_id():
        return (
            True if record.host == socket.gethostname() else None
        )  # the same node was booted since
    if record.namespace != _namespace():
        return None
    began = _start_ticks(record.pid)
    if began is None and _is_hidden(record.pid):
        return None
    return began != record.start_ticks


class Stated(Protocol):
    """A manifest, or what a list shows of one."""

    @property
    def state(self) -> RunState: ...
    @property
    def harness(self) -> HarnessRecord | None: ...


def state_of(manifest: Stated) -> str:
    """The run's state as it is now: `killed` for one that says `running` although its harness is
    gone.
    """
    gone = (
        manifest.state == "running" and manifest.harness is not None and is_gone(manifest.harness)
    )
    return "killed" if gone else manifest.state


def _start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is none, or only its
    corpse.
    """
    try:
        # the name stands in parentheses and may hold anything
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[_START])


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process and it is another user's, whom /proc may not show us
    (its option hidepid).
    """
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
