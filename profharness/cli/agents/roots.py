"""The folders that an agent may read, and the way from a path that it names to a file in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.cli.agents.limits import cut
from profharness.errors import InputError, UsageError


@dataclass(frozen=True)
class Roots:
    """Folders without links in their paths, the first of which relative paths begin in."""

    folders: tuple[Path, ...]

    def find(self, named: str) -> Path:
        """The file or folder that is named, without links in its path.

        A relative path is looked for below each root. Raises UsageError for one that leads out of
        them (by `..`, a link or from the root of the file system), InputError for one that is not
        there or is neither file nor folder.
        """
        if not named or "\0" in named:
            raise UsageError("no path is named", "name a run or a trace file, as list_runs does")
        places = [folder / named for folder in self.folders]
        path = next((place for place in places if _exists(place)), places[0])
        try:
            real = path.resolve()
        except (OSError, RuntimeError) as error:
            raise InputError(f"{cut(named)} cannot be read: {error}", _LISTED) from error
        if not any(real.is_relative_to(folder) for folder in self.folders):
            raise UsageError(
                f"{cut(named)} lies outside of the folders that may be read here",
                f"these are {', '.join(map(str, self.folders))}; the user adds others by "
                "profharness mcp --root FOLDER",
            )
        if not _exists(real):
            raise InputError(f"{cut(named)}: there is no such file or run directory", _LISTED)
        if not (real.is_dir() or real.is_file()):
            raise InputError(f"{cut(named)} is neither a file nor a folder", _LISTED)
        return real


_LISTED = "list_runs names the runs and trace files that can be read"


def roots_of(folders: Sequence[Path]) -> Roots:
    """The roots that a user named; the current folder where none is. Raises InputError for one
    that is no folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"--root {folder}: there is no such folder", "name an existing folder")
    real = [folder.resolve() for folder in folders or (Path(),)]
    return Roots(tuple(dict.fromkeys(real)))


def _exists(path: Path) -> bool:
    """Whether it is there; what may not be looked at is not."""
    try:
        return path.exists()
    except OSError:
        return False
