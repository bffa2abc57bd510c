"""One zip of some files of a run. The same files make the same bytes: members are sorted, and carry
one fixed time.
"""

from __future__ import annotations

import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.notes import NOTES
from profharness.rundir.outputs import whole_file
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.rundir.private.folders import private_folder
from profharness.rundir.shown.screen import one_line
from profharness.secrets import scrub as scrubbing

MEMBERS = (
    "hotspots.csv",
    MANIFEST,
    "merged.pftrace",
    NOTES,
    "report.html",
    "results.csv",
    "summary.json",
)
"""What a colleague needs, where the run has it; the files of tools stay at home."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold
_LARGE = 1 << 31  # bytes; a member from this size on needs the format's 64-bit fields
_PLAIN = (stat.S_IFREG | 0o644) << 16
_UNIX = 3


@dataclass(frozen=True)
class Archive:
    """What was put into a zip, what was removed from which member, and what was left out and
    why.
    """

    members: tuple[str, ...]
    removed: tuple[tuple[str, Counter[str]], ...]
    left_out: tuple[tuple[str, str], ...]

    def lines(self) -> Iterator[str]:
        """The same in words."""
        yield f"packed    {', '.join(self.members)}"
        for name, found in self.removed:
            values = f"{found.total()} value{'s' if found.total() > 1 else ''}"
            yield one_line(f"removed   {values} in {name}: {scrubbing.names_with_counts(found)}")
        for name, why in self.left_out:
            yield one_line(f"left out  {name}: {why}")


def pack(run: RunDir, name: str, place: Path) -> Archive:
    """Write the zip: a folder `name` with those of MEMBERS that the run has, scrubbed. Raises
    InputError where nothing could be packed, OSError where the zip cannot be written.
    """
    members: list[str] = []
    removed: list[tuple[str, Counter[str]]] = []
    left_out: list[tuple[str, str]] = []
    inside = Inside(run.root)
    with private_folder() as folder, whole_file(place) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
            for member in MEMBERS:
                if not (run.root / member).exists():
                    continue
                try:
                    found = _scrubbed(inside.require(run.root / member), folder / member)
                except InputError as error:
                    left_out.append((member, error.message))
                    continue
                _add(out, folder / member, f"{name}/{member}")
                (folder / member).unlink()
                members.append(member)
                if found:
                    removed.append((member, found))
        if not members:
            raise InputError(
                f"{run.root}: nothing of it could be packed: {left_out[0][1]}",
                "`profharness scrub` says of each file what it holds",
            )
    return Archive(tuple(members), tuple(removed), tuple(left_out))


def _scrubbed(file: Path, copy: Path) -> Counter[str]:
    """Make a copy without secrets, and say which there were. Raises InputError for what cannot be
    looked into as a whole.
    """
    shutil.copyfile(file, copy)
    copy.chmod(0o600)
    not_looked_at: list[str] = []
    found = scrubbing.scrub(copy, not_looked_at)
    if not_looked_at:
        raise InputError(f"parts of it were not looked at: {not_looked_at[0]}")
    return found


def _add(out: zipfile.ZipFile, file: Path, name: str) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = _UNIX, _PLAIN
    large = file.stat().st_size >= _LARGE
    with file.open("rb") as source, out.open(info, "w", force_zip64=large) as target:
        shutil.copyfileobj(source, target, 1 << 20)
