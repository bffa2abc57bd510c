"""Secrets in the files that tools left: found after a run, and removed from a file.

Databases, Parquet, Perfetto traces, reports, the sampler's files, JSON and text are looked into,
plain or gzipped; what is not is said. The new content is written beside a file, and then takes its
place.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from profharness.errors import InputError
from profharness.findings import Finding, finding
from profharness.readers.bytes import sqlite_file
from profharness.readers.perfetto import reader as pftrace
from profharness.rundir.blocks import Blocks, read_head
from profharness.rundir.manifest import Artifact
from profharness.rundir.paths import MANIFEST
from profharness.secrets import database, page, parquet, samples
from profharness.secrets import perfetto as perfetto_secrets
from profharness.secrets.patterns import clean_blocks
from profharness.secrets.replacing import is_being_written, is_temporary, replacing

_HEAD_BYTES = 1 << 18
_TEXT_BYTES = 4096
_NO_TEXT_BYTES = 16  # a number, as the hooks note the status of a process
_KEYTAB = b"\x05\x02"
_NOT_TEXT = frozenset(range(1, 9))

Kind = Literal["database", "page", "parquet", "perfetto", "samples", "text"]
_BEGIN: dict[bytes, Kind] = {
    sqlite_file.MAGIC: "database",
    parquet.MAGIC: "parquet",
    samples.START: "samples",
    page.START: "page",
}
"""How files of a kind begin."""


def files_of(path: Path) -> tuple[list[Path], list[str]]:
    """The file itself, or all files of a run directory; and in words what of it is not looked at.

    The run directory's own path may be a link, those inside are not followed: they may lead to
    anybody's files. What killed scrubs left comes last: it goes when the file beside it is cleaned.
    """
    if not (path / MANIFEST).is_file():
        return [path], []
    files: list[Path] = []
    left: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in (*(one for one in folders if (Path(folder) / one).is_symlink()), *names):
            file = Path(folder) / name
            mode = file.lstat().st_mode
            if is_being_written(file):
                left.append(f"{file} is written by a scrub that runs")
            elif stat.S_ISREG(mode):
                if not database.lies_beside_one(file):
                    files.append(file)
            elif stat.S_ISLNK(mode):
                left.append(f"{file} is a link, and is not followed")
            else:
                left.append(f"{file} is no regular file")
    return sorted(files, key=lambda file: (is_temporary(file), file)), sorted(left)


def went_with_another(path: Path) -> bool:
    """Whether this was left by a killed scrub, and is gone since the file beside it was cleaned."""
    return is_temporary(path) and not path.exists()


def scan(path: Path, left: list[str] | None = None) -> Counter[str]:
    """How many secret values of each variable (or kind of value) the file holds; an empty file
    holds none. `left` is told in words which parts were not looked at.

    Raises InputError when it cannot be read, and when it is none of what can be looked into.
    """
    if _is_empty(path):
        return Counter()
    counts: Counter[str] = Counter()
    match _kind(path):
        case "perfetto":
            counts = perfetto_secrets.find(path).counts
        case "parquet":
            counts = parquet.find(path, left)
        case "samples":
            counts = samples.find(path)
        case "database":
            found = database.find(path)
            counts = found.counts
            if left is not None:
                left += (f"{path}: {part}" for part in found.left)
        case "page":
            page.clean(path, counts)
        case "text":
            _find_in_text(path, counts)
    return counts


def _find_in_text(path: Path, counts: Counter[str]) -> None:
    blocks = Blocks(path)
    for _clean in clean_blocks(blocks, counts):
        pass
    if blocks.damage:
        raise _damaged(path, blocks.damage)


def scrub(path: Path, left: list[str] | None = None) -> Counter[str]:
    """Replace the secret values in the file and say how many of each variable; a file without any
    stays as it is.

    A reader or a kill sees the old or the new content. Raises InputError as `scan` does, and when
    the file is in use, damaged or cannot be written.
    """
    if not (found := scan(path, left)):
        return found
    names = path.stat().st_nlink - 1
    kind = _kind(path)
    try:
        if kind == "database":
            database.clean(path, database.find(path).columns)
        elif kind == "parquet":
            parquet.clean(path)
        elif kind == "samples":
            samples.clean(path)
        elif kind == "perfetto":
            _scrub_perfetto(path)
        elif kind == "page":
            page.scrub(path)
        else:
            _scrub_text(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}",
            "check the permissions of the file and its folder, and the space there",
        ) from error
    if names and left is not None:
        left.append(f"{path} has {names} more name{'s' * (names > 1)} that keep its old content")
    return found


def findings(root: Path, artifacts: Sequence[Artifact]) -> tuple[Finding, ...]:
    """What there is to say of a pass's files: one finding of all that hold secrets. Files that
    cannot be read are others' business, and so is what lies outside of the run directory.
    """
    held: list[str] = []
    total: Counter[str] = Counter()
    for artifact in artifacts:
        file = root / artifact.path
        try:
            if not file.resolve().is_relative_to(root.resolve()):
                continue
            found = scan(file)
        except (InputError, OSError):
            continue
        if found:
            held.append(artifact.path)
            total += found
    if not held:
        return ()
    where = held[0] if len(held) == 1 else f"{held[0]} and {len(held) - 1} more"
    return (
        finding(
            "secrets-in-artifact",
            f"{where}: values that look secret ({names_with_counts(total)})",
            files=len(held),
            values=total.total(),
        ),
    )


def names_with_counts(found: Counter[str]) -> str:
    """`HF_TOKEN x2, WANDB_API_KEY`, by name."""
    return ", ".join(
        name if count == 1 else f"{name} x{count}" for name, count in sorted(found.items())
    )


def _is_empty(path: Path) -> bool:
    """As the logs of a program that said nothing."""
    return path.is_file() and path.stat().st_size == 0


def _kind(path: Path) -> Kind:
    """What has to be done to it. Raises InputError for a file that is none of these."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is no regular file", "name a file or a run")
    head = read_head(path, _HEAD_BYTES)
    for magic, kind in _BEGIN.items():
        if head.startswith(magic) and (kind != "page" or path.stat().st_size <= page.LARGEST):
            return kind
    # zeros part the words of command lines and environments as the kernel gives them
    start = head[:_TEXT_BYTES]
    if len(head) <= _NO_TEXT_BYTES:
        return "text"
    if not _NOT_TEXT.intersection(start) and start.count(0) * 4 <= len(start):
        return "text"
    if pftrace.sniff(head, path.name):
        return "perfetto"
    if head.startswith(_KEYTAB):
        raise InputError(f"{path} is a Kerberos keytab", "a key as a whole: delete it")
    raise InputError(
        f"{path} is neither SQLite nor Parquet nor a Perfetto trace nor JSON nor text, and was not "
        "looked at",
        "other binary files cannot be cleaned in place: record again without the variable",
    )


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged: {why}", "copy or record it again; nothing was changed")


def _scrub_text(path: Path) -> None:
    blocks = Blocks(path)
    with replacing(path) as out:
        for clean in clean_blocks(blocks, Counter()):
            out.write(clean)
        if blocks.damage:
            raise _damaged(path, blocks.damage)


def _scrub_perfetto(path: Path) -> None:
    found = perfetto_secrets.find(path)
    with replacing(path) as out:
        found.write(out)
