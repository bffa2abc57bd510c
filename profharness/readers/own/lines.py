"""Files that the hooks append lines to, one per process: `<what>-<pid>.jsonl`."""

from __future__ import annotations

from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.limits import whole
from profharness.rundir.foreign.limits import LINES_BYTES
from profharness.rundir.foreign.small_files import read_file
from profharness.trace.columns.table import NULL


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file. Raises InputError when it cannot be read."""
    try:
        return read_file(path, LINES_BYTES, text=True).splitlines()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", "the run directory may be incomplete"
        ) from error


def pid_of(path: Path) -> int:
    """The process that wrote the file, by its name; NULL where the name does not say it."""
    number = whole(path.stem.rpartition("-")[2])
    return NULL if number is None or number < 0 else number
