"""Reads a certificate back and recomputes it from its run (docs/certificate.md#check)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from profharness.analysis.certificate.criteria import VERSION
from profharness.analysis.certificate.document import KIND, SCHEMA, Certificate, is_as_written
from profharness.analysis.certificate.records import Check, Fault, Judgement, Why
from profharness.errors import InputError, UsageError
from profharness.rundir.covered.files import REMOVED, FileHash, hash_of, listed, written
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.understand.certificate.making import judged

MOST_BYTES = 512 << 20
_SAME = 1e-6
"""By how much, relative to itself, a value may differ: other processors round otherwise."""


_WHICH = "name the JSON file that `profharness certify RUN` wrote"


class _Head(msgspec.Struct):
    kind: str = ""
    schema: int = 0


def check(document: Path, root: Path | None = None) -> Check:
    """Hold a certificate against its run: the folder that it lies in, or `root`.

    Raises InputError for what is no certificate or no run, and for criteria of another version;
    UsageError for the certificate of another run.
    """
    data = _read(document)
    certificate = _decoded(data, document)
    if not is_as_written(data):
        return _checked(certificate, (_fault(document.name, "changed", "its digest does not fit"),))
    run = _run(document, root)
    page, notes = _page(certificate, document)
    faults, scrubbed = _files(run, certificate)
    _require_same_run(run, certificate, faults)
    if faults or page:
        return _checked(certificate, (*page, *faults), scrubbed, notes)
    if certificate.judgement.criteria != VERSION:
        raise InputError(
            f"{document}: its criteria are of version {certificate.judgement.criteria}, and this "
            f"profharness judges by version {VERSION}",
            f"its files are as they were; check it with profharness {certificate.profharness}",
        )
    again = judged(run, certificate.judgement.point, certificate.calibrations)
    differences = tuple(_differences(certificate.judgement, again))
    return _checked(certificate, differences, scrubbed, notes, recomputed=True)


def _checked(
    certificate: Certificate,
    faults: tuple[Fault, ...],
    scrubbed: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    *,
    recomputed: bool = False,
) -> Check:
    return Check(
        run=certificate.run,
        point=certificate.judgement.point,
        outcome=certificate.judgement.outcome,
        holds=not faults,
        recomputed=recomputed,
        files=len(certificate.files),
        faults=faults,
        scrubbed=scrubbed,
        notes=notes,
    )


def _fault(name: str, why: Why, text: str = "") -> Fault:
    return Fault(name=name, why=why, text=text)


def _read(document: Path) -> bytes:
    if not document.exists():
        raise InputError(f"{document}: there is no such file", _WHICH)
    with reading(document):
        return read_file(document, MOST_BYTES)


def _decoded(data: bytes, document: Path) -> Certificate:
    """Raises InputError for what is no certificate, or one of a newer schema."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_certificate(document) from error
    if head.kind != KIND:
        raise _no_certificate(document)
    if head.schema > SCHEMA:
        raise InputError(
            f"{document}: written by a newer profharness (schema {head.schema}, known {SCHEMA})",
            "update profharness to check it",
        )
    with reading(document, "no readable certificate"):
        certificate = msgspec.json.decode(data, type=Certificate)
        check_numbers(certificate, str(document))
    return certificate


def _no_certificate(document: Path) -> InputError:
    return InputError(
        f"{document} is no certificate, or is damaged",
        _WHICH,
    )


def _run(document: Path, root: Path | None) -> Path:
    """The run of a certificate. Raises InputError where there is none."""
    if root is not None:
        return RunDir.open(root).root
    folder = document.parent
    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"{document} does not lie in a run directory",
            f"name the run, too: profharness certify --check {document} RUN",
        )
    return folder


def _require_same_run(root: Path, certificate: Certificate, faults: tuple[Fault, ...]) -> None:
    """Raises UsageError where most files are not as they were certified and the run has another id:
    that is another run, and not a changed one.
    """
    differ = {fault.name for fault in faults if fault.why != "added"}
    if 2 * len(differ) <= len(certificate.files):
        return
    try:
        found = RunDir.open(root).read_manifest().id
    except InputError:
        return
    if found != certificate.run:
        raise UsageError(
            f"the certificate is of the run {certificate.run}, and {root} is the run {found}",
            "name the run that it was made of: profharness certify --check FILE RUN",
        )


def _page(certificate: Certificate, document: Path) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """The page beside the document, and what to say of it where there is none."""
    page = certificate.page
    if page is None:
        return (), ()
    path = document.parent / Path(page.name).name
    if not path.is_file():
        return (), (f"{page.name} does not lie beside it, and was not checked",)
    if hashlib.sha256(_read(path)).hexdigest() != page.sha256:
        return (_fault(page.name, "changed"),), ()
    return (), ()


def _files(root: Path, certificate: Certificate) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """What is not as it was certified, in order of the paths; and the files that were scrubbed."""
    now = listed(root)
    there = {written(name): name for name in now.paths}
    certified = {file.path: file for file in certificate.files}
    faults: list[Fault] = []
    scrubbed: list[str] = []
    for name in sorted(there.keys() | certified.keys()):
        if name not in certified:
            faults.append(_fault(name, "added"))
        elif name in there:
            fault, clean = _compared(root, there[name], certified[name])
            faults += fault
            scrubbed += [name] * clean
        elif certified[name].scrubbed == REMOVED and _base(name) in scrubbed:
            scrubbed.append(name)
        else:
            faults.append(_fault(name, "missing"))
    new = (part for part in now.left_out if part not in certificate.left_out)
    faults += (_fault(part.partition(" is ")[0], "added", part) for part in new)
    return tuple(faults), tuple(scrubbed)


def _base(name: str) -> str:
    """The database whose journal, log or shared memory has this name."""
    return name.rpartition("-")[0]


def _compared(root: Path, name: str, file: FileHash) -> tuple[tuple[Fault, ...], bool]:
    try:
        found = hash_of(root, name)
    except InputError as error:
        return (_fault(file.path, "unreadable", error.message),), False
    if found.sha256 == file.sha256:
        return (), False
    if file.scrubbed and found.sha256 == file.scrubbed:
        return (), True
    return (_fault(file.path, "changed"),), False


def _differences(old: Judgement, new: Judgement) -> Iterator[Fault]:
    """Where the same files now give another result."""
    if old.outcome != new.outcome:
        yield _fault("outcome", "another result", f"{old.outcome}, now {new.outcome}")
    for one, other in zip(old.judged, new.judged, strict=True):
        if one.state != other.state:
            yield _fault(one.id, "another result", f"{one.state}, now {other.state}")
        elif not _same(one.value, other.value):
            yield _fault(one.id, "another result", f"{one.value}, now {other.value}")


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
