"""The file of a node in which the old caps stand while a run changes them: where it lies, who may
write it, and the lock that every change of a cap holds.

It lies outside of the run directory, on the node's own disk, so that the next profharness on the
node finds it; the identity of the boot says whether a restart has undone the caps already. Only
what this user owns is trusted: the folder must not be writable by anybody else.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from profharness.telemetry.caps.records import Saved, decode, encode

FOLDER = "PROFHARNESS_POWER_CAPS_DIR"
_PREFIX = "profharness-power-caps-"
_PLACE = "/var/tmp"  # noqa: S108  on the node's disk, kept over a restart; the folder is our own
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
LOCK_S = 30.0
_START = 19  # of the fields behind the name in /proc/<pid>/stat (proc(5))


class NotOurs(OSError):  # noqa: N818  named by what is wrong
    """The folder is not this user's own, or others may write it."""


def folder() -> str:
    """Where this user's record lies."""
    return os.environ.get(FOLDER) or f"{_PLACE}/{_PREFIX}{os.getuid()}"


def path() -> str:
    """The file of this node."""
    return f"{folder()}/{socket.gethostname()}.json"


def others() -> tuple[str, ...]:
    """The files of this node that other users have."""
    if os.environ.get(FOLDER):
        return ()
    own, found = folder(), []
    for name in sorted(_listed(_PLACE)):
        other = f"{_PLACE}/{name}"
        file = f"{other}/{socket.gethostname()}.json"
        is_theirs = name.removeprefix(_PREFIX) == str(_owner(other))
        if name.startswith(_PREFIX) and other != own and is_theirs and _owner(file) is not None:
            found.append(file)
    return tuple(found)


def boot_id() -> str:
    """Changes with each start of the node."""
    with open(_BOOT_ID, encoding="ascii") as file:  # noqa: PTH123  no pathlib in the sampler
        return file.read().strip()


def start_of(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where there is none that lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  no pathlib in the sampler
            fields = file.read().rpartition(b")")[2].split()
        return 0 if fields[0] in (b"Z", b"X") else int(fields[_START])
    except (OSError, ValueError, IndexError):
        return 0


def namespace() -> str:
    """Where process ids are counted: a container with its own sees no others."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  no pathlib in the sampler
    except OSError:
        return ""


def is_ended(saved: Saved) -> bool:
    """Whether the process that changed the caps is seen dead; one that cannot be seen from here
    counts as alive.
    """
    if saved.boot_id != boot_id():
        return True
    return saved.namespace == namespace() and start_of(saved.pid) != saved.start


def read(file: str) -> Saved | None:
    """What is written down; None where nothing is. Raises ValueError for a file that is damaged."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  no pathlib in the sampler
            return decode(opened.read(1 << 20))
    except FileNotFoundError:
        return None


def write(file: str, saved: Saved) -> None:
    """Replace the file in one step, and return only when the disk has it: the node may lose its
    power in the next moment. Raises OSError.
    """
    temporary = f"{file}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, encode(saved))
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(temporary, file)  # noqa: PTH105  no pathlib in the sampler
    _synced(os.path.dirname(file))  # noqa: PTH120  no pathlib in the sampler


def remove(file: str) -> None:
    """Nothing is to come back any more."""
    try:
        os.unlink(file)  # noqa: PTH108  no pathlib in the sampler
    except FileNotFoundError:
        return
    _synced(os.path.dirname(file))  # noqa: PTH120  no pathlib in the sampler


def make_folder() -> None:
    """The folder of this user, with mode 0755: others may read what is written down. Raises NotOurs
    where it is somebody else's, OSError where it cannot be made.
    """
    place = folder()
    os.makedirs(place, mode=0o755, exist_ok=True)  # noqa: PTH103  no pathlib in the sampler
    require_own(place)


def require_own(place: str) -> None:
    """Raises NotOurs where the folder is a link, somebody else's, or writable by others."""
    status = os.lstat(place)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise NotOurs(f"{place} is not a folder that this user alone may write")


@contextmanager
def locked(file: str) -> Iterator[None]:
    """Hold the lock of the file. Raises NotOurs, TimeoutError where another process holds it too
    long, OSError.
    """
    require_own(os.path.dirname(file))  # noqa: PTH120  no pathlib in the sampler
    handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    end = time.monotonic() + LOCK_S
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError("another process holds the lock of the caps") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _synced(place: str) -> None:
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _listed(place: str) -> list[str]:
    try:
        return os.listdir(place)  # noqa: PTH208  no pathlib in the sampler
    except OSError:
        return []


def _owner(place: str) -> int | None:
    try:
        return os.lstat(place).st_uid
    except OSError:
        return None
