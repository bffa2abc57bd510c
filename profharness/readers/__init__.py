"""One reader per file format: bytes of a tool's file to a `Trace` on the file's own clock, with its problems.

A reader is a module with `name`, `sniff` and `read`. It takes its file plain or gzipped, knows which clock the
format stamps, and never sees a manifest. What it drops or repairs is a counted `Problem`. The members are listed
here, specific formats before general ones; the first whose `sniff` says yes reads the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from profharness.errors import InputError
from profharness.readers import chrome_json, onnxruntime_json, telemetry
from profharness.readers.files import read_head
from profharness.trace.model import Trace

HEAD_BYTES = 1 << 18


class Reader(Protocol):
    """What a format needs to offer.

    `sniff` gets the first `HEAD_BYTES` decompressed bytes and the file's name, and reads nothing else. `read`
    raises InputError when nothing in the file is usable; with `ops=False` it leaves out operators, to save time.
    """

    name: str

    def sniff(self, head: bytes, name: str) -> bool: ...
    def read(self, path: Path, *, ops: bool = True) -> Trace: ...


READERS: tuple[Reader, ...] = (telemetry, onnxruntime_json, chrome_json)


def find_reader(path: Path) -> Reader:
    """The reader of a file. Raises InputError for a missing, unreadable or empty file, and for one of no known format."""
    head = read_head(path, HEAD_BYTES)
    for reader in READERS:
        if reader.sniff(head, path.name):
            return reader
    known = ", ".join(reader.name for reader in READERS)
    raise InputError(f"{path} is of no known trace format", f"known formats, plain or gzipped: {known}")


def read(path: Path, *, ops: bool = True) -> Trace:
    """The trace in a file of any known format. Raises InputError as `find_reader` and the format's reader do."""
    return find_reader(path).read(path, ops=ops)
