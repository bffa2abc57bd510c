"""A private temporary folder (mode 0700, in TMPDIR) that is removed when its user is done: after an
exception and after SIGTERM and SIGHUP, too. What a killed process left is swept by the next one.

The name says which process owns it: host, namespace of process ids, process id and the process's
start in clock ticks since boot (field 22 of /proc/PID/stat), so that neither a later process of the
same number nor a container that shares the folder misleads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_PREFIX = "profharness-private"
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_state = {"swept": False}


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder. Raises OSError where none can be made.

    While it is there, SIGTERM and SIGHUP first remove it and then end the process as they would
    have.
    """
    if not _state["swept"]:
        _state["swept"] = True
        sweep()
    with _removed_at_signals():
        folder = Path(tempfile.mkdtemp(prefix=f"{_own_prefix()}-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def free_bytes(folder: Path) -> int:
    """What an ordinary user can still write there."""
    return shutil.disk_usage(folder).free


def sweep() -> tuple[Path, ...]:
    """Remove the folders of this user that dead processes of this host left; which they were."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and folder.is_dir() and _is_left(folder.name):
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return tuple(removed)


def _own_prefix() -> str:
    return f"{_PREFIX}-{os.getpid()}-{_start_of(os.getpid())}-{_namespace()}-{_host()}"


def _namespace() -> str:
    """The number of our namespace of process ids; 0 where the kernel does not say."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def _host() -> str:
    return "".join(letter for letter in os.uname().nodename if letter.isalnum())


def _is_left(name: str) -> bool:
    """Whether the owner is seen dead; the folders of other hosts and containers are theirs."""
    pid, start, *place = [*name.removeprefix(f"{_PREFIX}-").split("-"), "", ""]
    if not pid.isdecimal() or not start.isdecimal() or place[:2] != [_namespace(), _host()]:
        return False
    return _start_of(int(pid)) != int(start)


def _start_of(pid: int) -> int:
    """When a process started, in clock ticks since boot (proc(5)); 0 where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def _removed_at_signals() -> Iterator[None]:
    """Signals that end the process unwind it first. Where somebody else listens to them, or this is
    not the main thread, they are left alone.
    """
    came: list[int] = []

    def unwind(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise SystemExit(128 + number)

    mine = []
    if threading.current_thread() is threading.main_thread():
        mine = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
        if came:
            os.kill(os.getpid(), came[0])
