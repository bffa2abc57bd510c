"""Finds the files that a layer left for one pass, by what the layer says of them (`layer_facts`),
without the layer.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.limits import SIDECAR_BYTES
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import open_regular, read_file
from profharness.rundir.layer_facts import LeftFile, LeftFiles
from profharness.rundir.manifest import Artifact

_DIGITS = 10  # no rank and no process number has as many
BESIDE = ".profharness.json"
"""What the name of a file has behind it beside which a hook wrote this."""
PACKED = ".gz"
"""What the name of a profile gets behind it when the run compresses it."""


@dataclass(frozen=True)
class LayerPass:
    """One layer in one pass of a run. `ranked`: the run has several ranks, and folders of owners
    are theirs.
    """

    run_root: Path
    layer: str
    pass_name: str
    ranked: bool = False

    @property
    def folder(self) -> Path:
        """Where all of the layer's files lie."""
        return self.run_root / "artifacts" / self.layer


class _Sidecar(msgspec.Struct):
    pid: int | None = None
    rank: int | None = None
    point: str = ""
    host: str = ""
    role: str = "trace"


@dataclass(frozen=True)
class _Candidate:
    """A file whose name the layer knows; those of one `group` hold the same records."""

    path: Path
    kind: LeftFile
    group: tuple[Path, str]
    folder: Path
    pid: str = ""


def collect(leaves: LeftFiles, of: LayerPass, known: frozenset[str]) -> tuple[Artifact, ...]:
    """The files of this pass, relative to the run, without those in `known`; of one group those
    that are not read are aside.
    """
    groups: dict[tuple[Path, str], list[_Candidate]] = {}
    for candidate in _candidates(leaves, of):
        groups.setdefault(candidate.group, []).append(candidate)
    return tuple(
        _artifact(candidate, of, leaves, aside=not _is_read(candidate, group, leaves))
        for group in groups.values()
        for candidate in group
        if not _is_known(candidate, leaves, of, known)
    )


def names_profile(leaves: LeftFiles, name: str) -> bool:
    """Whether the layer leaves files of this name, and not what a hook writes beside one."""
    return not name.endswith(BESIDE) and _kind_of_name(leaves, name) is not None


def executions(of: LayerPass) -> list[Path]:
    """The folders HOST/OWNER/PASS and HOST/OWNER/PASS.* of this pass, in order."""
    return [
        folder
        for folder in sorted(of.folder.glob(f"*/*/{glob.escape(of.pass_name)}*"))
        if folder.name.split(".")[0] == of.pass_name
    ]


def _is_known(
    candidate: _Candidate, leaves: LeftFiles, of: LayerPass, known: frozenset[str]
) -> bool:
    """Whether the manifest names the file, or a run that was killed while it compressed the profile
    of a hook names the packed copy.
    """
    path = str(candidate.path.relative_to(of.run_root))
    return path in known or (leaves.place == "hook" and path + PACKED in known)


def tail_closes(path: Path) -> bool:
    """Whether a JSON file ends as one that was written to its end does."""
    try:
        if path.name.endswith(".gz"):
            return True  # its own checksum tells the reader
        with open_regular(path) as file:
            head = file.read(64).lstrip()[:1]
            file.seek(max(0, path.stat().st_size - 64))
            return head in (b"{", b"[") and file.read().rstrip()[-1:] in (b"}", b"]")
    except (OSError, InputError):
        return False


def _candidates(leaves: LeftFiles, of: LayerPass) -> Iterator[_Candidate]:
    if leaves.place == "execution":
        for folder in executions(of):
            for path in _inside(folder, leaves):
                if kind := _kind(path, leaves):
                    pid = _pid(path, leaves)
                    yield _Candidate(path, kind, (folder, pid), folder, pid)
        return
    for path in sorted(of.folder.rglob("*")):
        kind = _kind(path, leaves)
        if kind is None or path.name.endswith(BESIDE):
            continue
        if leaves.place == "hook":
            if path.name.endswith(PACKED) and path.with_suffix("").is_file():
                continue  # the run was killed while it compressed the other
            yield _Candidate(path, kind, (of.folder, ""), path.parent)
            continue
        if named := _of_process(path, leaves, of):
            anchor, pid = named
            yield _Candidate(path, kind, (path.parent, pid), anchor, pid)


def _of_process(path: Path, leaves: LeftFiles, of: LayerPass) -> tuple[Path, str] | None:
    """Which of a folder and the file in it is named after this pass and a process, and the pid; the
    folder goes before the file.
    """
    for anchor, pattern in ((path.parent, leaves.folder), (path, leaves.pid)):
        match = re.search(pattern, anchor.name) if pattern else None
        if match and anchor.name[: match.start()].split(".")[0] == of.pass_name:
            return anchor, _first_group(match)
    return None


def _inside(folder: Path, leaves: LeftFiles) -> list[Path]:
    if leaves.beside:
        tables = {path.parent for path in folder.rglob(glob.escape(leaves.beside))}
        return sorted({path for table in tables for path in table.rglob("*")})
    return sorted(folder.rglob("*") if leaves.deep else folder.iterdir())


def _kind(path: Path, leaves: LeftFiles) -> LeftFile | None:
    kind = _kind_of_name(leaves, path.name)
    if kind is None or not path.is_file() or (leaves.filled and not path.stat().st_size):
        return None
    return kind


def _kind_of_name(leaves: LeftFiles, name: str) -> LeftFile | None:
    return next((kind for kind in leaves.files if re.fullmatch(kind.name, name)), None)


def _pid(path: Path, leaves: LeftFiles) -> str:
    match = re.search(leaves.pid, path.name) if leaves.pid else None
    return _first_group(match) if match else ""


def _first_group(match: re.Match[str]) -> str:
    """The digits that the first group found; empty where a pattern has none or finds others."""
    text = (match[1] or "") if match.re.groups else ""
    return text if text.isdecimal() and len(text) < _DIGITS else ""


def _is_read(candidate: _Candidate, group: list[_Candidate], leaves: LeftFiles) -> bool:
    """Whether this file speaks for its group; files without a turn all do, as far as they are not
    aside.
    """
    if candidate.kind.aside:
        return False
    if candidate.kind.turn is None:
        return True
    whole = [each.kind.turn for each in group if each.kind.turn is not None and _is_whole(each)]
    if not whole:
        return leaves.first and candidate is group[0]
    return candidate.kind.turn == min(whole)


def _is_whole(candidate: _Candidate) -> bool:
    if candidate.kind.whole == "closed":
        return tail_closes(candidate.path)
    return candidate.kind.whole == "" or candidate.path.stat().st_size > 0


def _artifact(candidate: _Candidate, of: LayerPass, leaves: LeftFiles, *, aside: bool) -> Artifact:
    path, file_format = candidate.path, candidate.kind.format
    facts = Artifact(
        path=str(path.relative_to(of.run_root)),
        layer=of.layer,
        format=file_format,
        pass_name=of.pass_name,
        host=candidate.folder.parent.parent.name,
        pid=int(candidate.pid) if candidate.pid else None,
        rank=_rank(candidate, of, leaves),
        size_bytes=path.stat().st_size,
        aside=aside,
    )
    if leaves.place != "hook":
        return facts
    sidecar = _read_sidecar(path.with_name(path.name + BESIDE))
    return msgspec.structs.replace(
        facts,
        format=file_format if sidecar.role == "trace" else f"{file_format}-marker",
        host=sidecar.host or path.relative_to(of.folder).parts[0],
        pid=sidecar.pid,
        rank=sidecar.rank,
        point=sidecar.point,
    )


def _rank(candidate: _Candidate, of: LayerPass, leaves: LeftFiles) -> int | None:
    """The rank whose folder this is; a tool that fills in names itself writes the pid there where
    there are no ranks.
    """
    owner = candidate.folder.parent.name
    named = owner != candidate.pid if leaves.place == "process" else of.ranked
    return int(owner) if named and owner.isdecimal() and len(owner) < _DIGITS else None


def _read_sidecar(path: Path) -> _Sidecar:
    """What the hook wrote beside its file; a missing or cut sidecar is an empty one (the reader
    reports it).
    """
    try:
        with reading(path):
            sidecar = msgspec.json.decode(read_file(path, SIDECAR_BYTES), type=_Sidecar)
            check_numbers(sidecar, str(path))
            return sidecar
    except InputError:
        return _Sidecar()
