"""What the file of a run's holder says, read with care: anyone may have written the folder."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from profharness.rundir.manifest import HarnessRecord

_MOST_BYTES = 16 << 10
_SHOWN = 64  # characters of a foreign name
_MOST_NUMBER = 2**31 - 1

Nonce = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Short = Annotated[str, msgspec.Meta(max_length=512)]


class Holder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that measures in a run directory, or is about to.

    `nonce` is its own, drawn at random. `job` is the batch job that it belongs to (`slurm 4711`),
    `restart` how often that job was started again, `since` the time in UTC.
    """

    schema: int = 1
    nonce: Nonce
    harness: HarnessRecord
    since: _Short = ""
    job: _Short = ""
    restart: int = 0

    @property
    def named(self) -> str:
        """`process 4711 on node7 (Slurm job 42)`, in characters that can be shown anywhere."""
        job = f" (job {shown(self.job)})" if self.job else ""
        return f"process {self.harness.pid} on {shown(self.harness.host)}{job}"


@dataclass(frozen=True)
class Unreadable:
    """A file in the place of a holder's that is none. `nonce` names this file with this content;
    `empty`: its writer may be about to fill it.
    """

    nonce: str
    why: str
    empty: bool = False


def shown(text: str) -> str:
    """A text of a foreign file in at most 64 characters that a terminal only shows."""
    return "".join(one if one.isprintable() else "?" for one in text[:_SHOWN])


def read(path: Path) -> Holder | Unreadable | None:
    """What the file says; None where there is none. Neither a link is followed nor a pipe waited
    for, and no more than 16 KiB are read. Raises OSError where it may not be read.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return Unreadable(_nonce_of(status), "it is not a plain file")
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        data = file.read(_MOST_BYTES + 1)
    return _decoded(data, _nonce_of(status))


def _decoded(data: bytes, nonce: str) -> Holder | Unreadable:
    if not data:
        return Unreadable(nonce, "it is empty", empty=True)
    if len(data) > _MOST_BYTES:
        return Unreadable(nonce, "it is too long")
    try:
        holder = msgspec.json.decode(data, type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Unreadable(nonce, "it does not say which process that is")
    if not 0 < holder.harness.pid <= _MOST_NUMBER:
        return Unreadable(nonce, f"there is no process of the number {holder.harness.pid}")
    return holder


def _nonce_of(status: os.stat_result) -> str:
    """Of a file that does not name itself: another one, or another content, has another nonce."""
    return f"unreadable-{status.st_ino:x}-{status.st_mtime_ns:x}"
