"""The run directory: every path in one place, atomic writes, and opening what a killed run left.

Layout (docs/run-directory.md#layout): manifest.json, control/<pass>/, points/<pass>/<point>/,
telemetry/<host>.*, artifacts/<layer>/<host>/<rank or pid>/, merged.pftrace, summary.json,
hotspots.csv, report.html.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError, OutputExists
from profharness.rundir import manifest as manifest_module
from profharness.rundir.claims import new_folders
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.limits import MANIFEST_BYTES
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.manifest import Manifest
from profharness.rundir.outputs import require_folder, temporary_beside, unwritable

MANIFEST = "manifest.json"
_ELSEWHERE = "name another place with --output"


_OWN, _OWN_AND_GROUP = 0o600, 0o640


def write_atomic(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace `path` by `data` so that a reader or a kill sees the old or the new file, never a
    part. `mode` says who may do what, less the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = temporary_beside(path, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:  # Ctrl-C too: no half-written file may stay
        temporary.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class RunDir:
    """Paths of one run. Methods that end in `_dir` make the folder."""

    root: Path

    @classmethod
    def create(cls, root: Path, *, shared: bool = False) -> RunDir:
        """Make the directory, for its owner alone unless it is `shared`. It may exist if it is
        empty but for who holds it, and keeps its mode then. Raises OutputExists otherwise, and
        UsageError where nothing can be written.
        """
        try:
            made = new_folders.make(root, shared=shared)
        except OSError as error:
            raise unwritable(root, error, _ELSEWHERE) from error
        if not made and new_folders.is_taken(root):
            raise OutputExists(
                f"{root} exists and is not an empty folder",
                "name another with --output, or remove it",
            )
        require_folder(root, _ELSEWHERE)
        return cls(root)

    @classmethod
    def open(cls, root: Path) -> RunDir:
        """An existing run. Raises InputError when there is no manifest."""
        if not os.path.lexists(root):
            raise InputError(
                f"{root}: there is no such run directory", "`profharness ls` lists runs"
            )
        if not (root / MANIFEST).is_file():
            raise InputError(
                f"{root} is not a run directory (no {MANIFEST})",
                "name a folder made by `profharness run`",
            )
        return cls(root)

    @property
    def manifest_path(self) -> Path:
        return self.root / MANIFEST

    @property
    def merged(self) -> Path:
        return self.root / "merged.pftrace"

    @property
    def summary(self) -> Path:
        return self.root / "summary.json"

    @property
    def hotspots(self) -> Path:
        return self.root / "hotspots.csv"

    @property
    def results(self) -> Path:
        """The results of a scan as a table."""
        return self.root / "results.csv"

    @property
    def report(self) -> Path:
        return self.root / "report.html"

    @property
    def telemetry(self) -> Path:
        return self.root / "telemetry"

    @property
    def hooks(self) -> Path:
        """Hello files, one per hooked process."""
        return self.root / "control" / "hooks"

    def control_dir(self, pass_name: str) -> Path:
        return _made(self.root / "control" / pass_name)

    def point_path(self, pass_name: str, point: str) -> Path:
        return self.root / "points" / pass_name / point

    def point_dir(self, pass_name: str, point: str) -> Path:
        return _made(self.point_path(pass_name, point))

    def artifacts_path(self, layer: str) -> Path:
        return self.root / "artifacts" / layer

    def artifacts_dir(self, layer: str, host: str, owner: str) -> Path:
        return _made(self.artifacts_path(layer) / host / owner)

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def read_manifest(self) -> Manifest:
        """Raises InputError when it is damaged, or cannot be read."""
        with reading(self.manifest_path):
            data = read_file(Inside(self.root).require(self.manifest_path), MANIFEST_BYTES)
        return manifest_module.decode(data, str(self.manifest_path))

    def write_manifest(self, manifest: Manifest, *, shared: bool = False) -> None:
        """It holds variables of the environment: who may read it is decided as it is first written
        (its owner, and the group where the run is `shared` or lies in a folder that makes all in it
        the group's), and stays so.
        """
        write_atomic(
            self.manifest_path,
            manifest_module.encode(manifest),
            mode=self._manifest_mode(shared=shared),
        )

    def _manifest_mode(self, *, shared: bool) -> int:
        try:
            return stat.S_IMODE(self.manifest_path.stat().st_mode)
        except OSError:  # the first one
            return _OWN_AND_GROUP if shared or new_folders.is_the_groups(self.root) else _OWN


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
