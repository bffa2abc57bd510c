"""The file being written: plain or gzipped, complete or not there at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from profharness.rundir.outputs import temporary_beside


class Output:
    """Bytes in order; `size` counts them before compression."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0

    def write(self, data: bytes | npt.NDArray[np.uint8]) -> None:
        """Append `data`: bytes, or a contiguous array of them, which is not copied."""
        self._file.write(data if isinstance(data, bytes) else data.data)
        self.size += len(data)


@contextmanager
def replacing(path: Path) -> Iterator[Output]:
    """An output that takes the place of `path` when the block ends well, and leaves nothing behind
    otherwise.

    A name ending in .gz is compressed (level 6, no time stamp, so equal traces give equal files).
    """
    handle, temporary = temporary_beside(path)
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(
                    filename="", mode="wb", compresslevel=6, fileobj=plain, mtime=0
                ) as packed:
                    yield Output(cast("BinaryIO", packed))
            else:
                yield Output(plain)
        temporary.replace(path)
    except BaseException:  # Ctrl-C too: no half-written file may stay
        temporary.unlink(missing_ok=True)
        raise
