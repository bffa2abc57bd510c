"""Which files of a run a certificate rests on, with the hash of each.

These are the records that nothing makes again: the manifest, how a job ended, and all below
control/, points/, telemetry/ and artifacts/. What `report` and `merge` write again from them is
left out, and so is what people add (notes.json). Files are only read here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import msgspec

from profharness.rundir.blocks import BLOCK_BYTES
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.small_files import kind_of, open_regular
from profharness.rundir.paths import MANIFEST

ALONE = (MANIFEST, "job.json")
"""Records that lie in the run directory itself."""
FOLDERS = ("control", "points", "telemetry", "artifacts")
"""Folders of records, all of whose files count."""
MADE_AGAIN = ("telemetry/*.parquet", "telemetry/ResourceLog.*")
"""What lies among the records and is made from them by `report`."""
REMOVED = "removed"
_LINK = b"link to "


class FileHash(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file: its path from the run directory with `/` between folders, as `written` has it, its
    size in bytes, and the SHA-256 of its bytes in hexadecimal digits.

    `scrubbed` is the hash that it has once `profharness scrub` has removed the secrets that it
    holds, `REMOVED` for the journal of a database that holds some, which goes then; empty for a
    file without any, which stays as it is.
    """

    path: str
    size_bytes: int
    sha256: str
    scrubbed: str = ""


@dataclass(frozen=True)
class Listed:
    """The files in order of their paths, and what is none and so has no hash, with the reason."""

    paths: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def listed(root: Path) -> Listed:
    """The records of the run in `root`. Raises InputError where a folder cannot be looked
    through.
    """
    paths: list[str] = []
    left_out: list[str] = []
    for path in _records(root):
        name = path.relative_to(root).as_posix()
        if is_made_again(name):
            continue
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            paths.append(name)
        else:
            left_out.append(f"{written(name)} is {kind_of(mode)}")
    return Listed(tuple(sorted(paths)), tuple(sorted(left_out)))


def written(name: str) -> str:
    r"""The path as JSON can hold it: a byte that is no UTF-8 as `\udcff`, and a backslash as two,
    so that different paths stay different.
    """
    return name.replace("\\", r"\\").encode("utf-8", "backslashreplace").decode()


def is_made_again(name: str) -> bool:
    """Whether `report` makes the file of this path again from the others."""
    inside = len(PurePosixPath(name).parts)
    return any(
        fnmatchcase(name, pattern) and inside == len(PurePosixPath(pattern).parts)
        for pattern in MADE_AGAIN
    )


def hash_of(root: Path, name: str) -> FileHash:
    """The hash of one record; of a link that of where it points to, since it is never followed out
    of the run. Raises InputError for a file that cannot be read.
    """
    path = root / name
    with reading(path):
        if path.is_symlink():
            data = _LINK + os.fsencode(path.readlink())
            return FileHash(
                path=written(name), size_bytes=0, sha256=hashlib.sha256(data).hexdigest()
            )
        digest = hashlib.sha256()
        with open_regular(path) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
            return FileHash(path=written(name), size_bytes=file.tell(), sha256=digest.hexdigest())


def _records(root: Path) -> Iterator[Path]:
    for name in ALONE:
        if os.path.lexists(root / name):
            yield root / name
    for folder in FOLDERS:
        top = root / folder
        if top.is_symlink():
            yield top
        elif top.is_dir():
            with reading(top):
                yield from _below(top)


def _below(folder: Path) -> Iterator[Path]:
    """All that lies below the folder and is no folder; links are named and not followed."""

    def refuse(error: OSError) -> None:
        raise error

    for at, folders, names in os.walk(folder, onerror=refuse):
        here = Path(at)
        yield from (here / name for name in folders if (here / name).is_symlink())
        yield from (here / name for name in names)
