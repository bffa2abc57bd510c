"""Files of a run that are read whole: only ordinary ones, and only up to a size."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from profharness.errors import InputError
from profharness.rundir.blocks import BLOCK_BYTES, is_empty
from profharness.rundir.foreign.border import DAMAGED
from profharness.units import format_bytes


def open_regular(path: Path) -> BinaryIO:
    """The file, opened for reading. Raises OSError as `open` does, and InputError for a pipe, a
    device, a socket or a folder: nothing waits for a writer that never comes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is {kind_of(mode)}, not an ordinary file", DAMAGED)
        return os.fdopen(descriptor, "rb")
    except BaseException:  # whatever happens, the descriptor is closed
        os.close(descriptor)
        raise


def read_file(path: Path, limit: int, *, text: bool = False) -> bytes:
    """All bytes of an ordinary file; of a `text` those of its blocks that hold more than zeros, as
    a hole of a sparse file may be larger than the memory. Raises OSError as `open` does, and
    InputError for another kind of file and for one of more than `limit` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # not more than it has: Python takes the memory for all that is asked for at once
        if size > limit:
            data = b""
        elif text:
            blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
            data = b"".join(block for block in blocks if not is_empty(block))
        else:
            data = file.read(min(limit, size) + 1)
    if size > limit or len(data) > limit:
        raise InputError(
            f"{path} has {format_bytes(max(size, len(data)))}, more than the "
            f"{format_bytes(limit)} that such a file can have",
            DAMAGED,
        )
    return data


def kind_of(mode: int) -> str:
    """What a file is that is no ordinary one, in words; `mode` is that of stat(2)."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")
