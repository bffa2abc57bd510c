"""A file's new content beside it, which takes its place when it is whole: a reader or a kill at any
moment sees the old or the new content.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from profharness.rundir.blocks import GZIP


def is_temporary(path: Path) -> bool:
    """Whether it is called as what a scrub writes beside a file, and a killed one leaves there."""
    return _TEMPORARY.match(path.name) is not None


def is_being_written(path: Path) -> bool:
    """Whether it is called as what a process writes that still runs."""
    found = _TEMPORARY.match(path.name)
    return found is not None and _is_alive(int(found[1]))


@contextmanager
def private(path: Path) -> Iterator[Path]:
    """An empty file beside the file, that only this user may read; it is gone afterwards, unless it
    was moved. What earlier, killed scrubs left of the same file goes first.
    """
    target = path.resolve()
    _sweep(target)
    prefix = f".{target.name[:_LONGEST_NAME]}{_SUFFIX}{os.getpid()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """What is written takes the file's place, compressed where the file was; of a link that of the
    file itself.
    """
    with private(path) as temporary:
        with temporary.open("wb") as out:
            if is_gzipped(path):
                with gzip.GzipFile(
                    filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0
                ) as packed:
                    yield packed
            else:
                yield out
        take_place(temporary, path)


def take_place(temporary: Path, path: Path) -> None:
    """The file's new content, with the mode of the old one, on disk before it has the name."""
    target = path.resolve()
    temporary.chmod(target.stat().st_mode & 0o7777)
    _to_disk(temporary)
    temporary.replace(target)
    _to_disk(target.parent)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_gzipped(path: Path) -> bool:
    """Whether it begins as RFC 1952 says."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


_SUFFIX = ".scrub-"
_TEMPORARY = re.compile(r"\..+\.scrub-([0-9]{1,18})-")
_LONGEST_NAME = 160  # a name has at most 255 bytes


def _sweep(target: Path) -> None:
    start = f".{target.name[:_LONGEST_NAME]}{_SUFFIX}"
    for entry in os.scandir(target.parent):
        pid = entry.name.removeprefix(start).partition("-")[0]
        if entry.name.startswith(start) and pid.isdecimal() and not _is_alive(int(pid)):
            Path(entry.path).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
