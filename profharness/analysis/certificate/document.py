"""A certificate as a document: what was judged, the hashes of the files that it rests on, and the
digest by which a changed byte of the document itself is found. Pure (docs/certificate.md#json).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from profharness.analysis.certificate.records import Judgement
from profharness.node.ceilings import Calibration
from profharness.rundir.covered.files import FileHash

SCHEMA = 1
KIND = "profharness certificate"
NO_DIGEST = "0" * 64
_DIGEST = re.compile(rb'^ *"digest": "([0-9a-f]{64})",?$', re.MULTILINE)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The page that was written beside the document: the name of its file and its hash."""

    name: str
    sha256: str


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document. `run` is the id of the run, `made` when it began and `certified` when it
    was judged (UTC), `calibrations` the measured ceilings that it was judged by, `left_out` what
    lies among the records and has no hash.
    """

    schema: int = SCHEMA
    kind: str = KIND
    digest: str = NO_DIGEST
    profharness: str
    certified: str
    run: str
    made: str
    judgement: Judgement
    calibrations: tuple[Calibration, ...] = ()
    files: tuple[FileHash, ...] = ()
    left_out: tuple[str, ...] = ()
    page: Page | None = None


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one kind that a certificate rests on: how many, of how many bytes together, and
    the SHA-256 of their list as `sha256sum` prints it.
    """

    name: str
    files: int
    size_bytes: int
    sha256: str


def rests(files: Sequence[FileHash]) -> tuple[Rest, ...]:
    """The files by the first part of their paths: the manifest, control, points, telemetry and
    artifacts, in this order.
    """
    groups: dict[str, list[FileHash]] = {}
    for file in files:
        groups.setdefault(file.path.partition("/")[0], []).append(file)
    order = ("manifest.json", "control", "points", "telemetry", "artifacts")
    names = [*(name for name in order if name in groups), *sorted(groups.keys() - set(order))]
    return tuple(
        Rest(
            name=name,
            files=len(groups[name]),
            size_bytes=sum(file.size_bytes for file in groups[name]),
            sha256=hash_of_list(groups[name]),
        )
        for name in names
    )


def hash_of_list(files: Iterable[FileHash]) -> str:
    """SHA-256 of the lines `<hash>  <path>` of the files in their order."""
    lines = "".join(f"{file.sha256}  {file.path}\n" for file in files)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def sealed(data: bytes) -> bytes:
    """The encoded document with its digest filled in: the SHA-256 of its bytes with 64 zeros in the
    digest's place.
    """
    return _with_digest(data, hashlib.sha256(_with_digest(data, NO_DIGEST)).hexdigest())


def is_as_written(data: bytes) -> bool:
    """Whether the bytes of a document are those whose digest it states."""
    stated = _DIGEST.findall(data)
    return len(stated) == 1 and sealed(data) == data


def _with_digest(data: bytes, digest: str) -> bytes:
    return _DIGEST.sub(lambda found: found[0].replace(found[1], digest.encode()), data, count=1)
