"""What a list of runs shows of each, read without the rest of its manifest: a folder may hold
thousands of runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from profharness.findings.kind import Severity
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.limits import MANIFEST_BYTES
from profharness.rundir.foreign.records import check_counts
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.manifest import GitState, HarnessRecord, RunState, check_schema
from profharness.rundir.paths import MANIFEST


class ListedPoint(msgspec.Struct, frozen=True):
    """A point by its id, which the repeats of a point share."""

    id: str


class ListedLayer(msgspec.Struct, frozen=True):
    """A layer by its name."""

    name: str


class ListedPass(msgspec.Struct, frozen=True):
    """A pass, and those that took its place where it was split."""

    name: str
    split: tuple[str, ...] = ()


class ListedFinding(msgspec.Struct, frozen=True):
    """A finding by its kind."""

    id: str
    severity: Severity


class ListedScan(msgspec.Struct, frozen=True):
    """A scan by its name."""

    name: str


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a manifest that a list shows; `Manifest` says what they mean."""

    id: str
    created: str
    state: RunState = "running"
    points: tuple[ListedPoint, ...] = ()
    layers: tuple[ListedLayer, ...] = ()
    passes: tuple[ListedPass, ...] = ()
    harness: HarnessRecord | None = None
    kind: Literal["scan", "command", ""] = ""
    scan: ListedScan | None = None
    command: tuple[str, ...] = ()
    exit_status: int | None = None
    findings: tuple[ListedFinding, ...] = ()


class IndexedRun(ListedRun, frozen=True, kw_only=True):
    """The fields of a manifest that an index of many runs shows besides."""

    git: GitState | None = None


_DECODER = msgspec.json.Decoder(ListedRun)
_INDEXED = msgspec.json.Decoder(IndexedRun)
_RunT = TypeVar("_RunT")


def runs_below(folder: Path) -> list[Path]:
    """The folders directly below this one that hold a manifest of whatever kind, and those that
    nobody may look into; in order. Raises OSError where the folder itself cannot be read.
    """
    with os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in entries if _may_be_run(entry)]
    return sorted(found)


def _may_be_run(entry: os.DirEntry[str]) -> bool:
    try:
        os.lstat(f"{entry.path}/{MANIFEST}")
    except PermissionError:
        return True
    except OSError:  # a file, a folder without one, a link that leads nowhere or to itself
        return False
    return True


def read_listed(root: Path) -> ListedRun:
    """What a list shows of a run. Raises InputError for a manifest that is damaged, of a newer
    version, or cannot be read.
    """
    return _read(root, _DECODER)


def read_indexed(root: Path) -> IndexedRun:
    """What an index shows of a run, from its manifest. Raises InputError as `read_listed` does."""
    return _read(root, _INDEXED)


def _read(root: Path, decoder: msgspec.json.Decoder[_RunT]) -> _RunT:
    path = root / MANIFEST
    with reading(path, "not a readable manifest"):
        data = read_file(Inside(root).require(path), MANIFEST_BYTES)
        check_schema(data, str(path))
        check_counts(data, str(path))
        return decoder.decode(data)
