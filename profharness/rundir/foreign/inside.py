"""Which files belong to a run: those that lie in its folder, and no link or `..` that leads out of
it.

The run's own path may be a link, and links from one place in the run to another are followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import InputError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.names import wrong_path
from profharness.rundir.foreign.small_files import kind_of

if TYPE_CHECKING:
    from profharness.trace.model import Problem


@dataclass(frozen=True)
class Found:
    """Files of a run in order, and what is named like one but is not read, with the reason."""

    paths: tuple[Path, ...] = ()
    refused: tuple[Problem, ...] = ()


class Inside:
    """One run directory, asked about the files in it. What is known of folders is kept, so that
    thousands of files of one folder cost one look each.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real = os.path.realpath(root)
        self._folders: dict[str, str] = {}

    def found(self, pattern: str, *, folders: bool = False) -> Found:
        """The ordinary files (or `folders`) that match a glob pattern below the run. Raises
        InputError where its folders cannot be looked through.
        """
        with reading(self.root / pattern.partition("*")[0]):
            paths = sorted(self.root.glob(pattern))
        return self.sorted_out(paths, folders=folders)

    def sorted_out(self, paths: Iterable[Path], *, folders: bool = False) -> Found:
        """Those of the paths, all below the run, that may be read."""
        from profharness.trace.model import (
            Problem,  # with NumPy, which a list of runs can do without
        )

        kept: list[Path] = []
        refused: list[Problem] = []
        for path in paths:
            why = self.why_not(path, folder=folders)
            if not why:
                kept.append(path)
            elif not (folders and why.endswith(_NO_FOLDER)):
                refused.append(Problem("warning", self.named(path), 1, why))
        return Found(tuple(kept), tuple(refused))

    def why_not(self, path: Path, *, folder: bool = False) -> str:
        """Why a file (or `folder`) below the run is not read, in words; empty for one that may be,
        and for one that is missing, which opening it tells.
        """
        return self._why_not(str(path), folder=folder)

    def _why_not(self, path: str, *, folder: bool) -> str:
        try:
            mode = os.lstat(path).st_mode
            if not self._holds(self._folder(path[: path.rfind(os.sep) + 1])):
                return _OUT
            if stat.S_ISLNK(mode):
                if not self._holds(os.path.realpath(path)):
                    return _OUT
                mode = os.stat(path).st_mode  # noqa: PTH116  strings cost a third of paths
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"it cannot be read: {error.strerror or error}"
        if folder:
            return "" if stat.S_ISDIR(mode) else f"it is {_NO_FOLDER}"
        return "" if stat.S_ISREG(mode) else f"it is {kind_of(mode)}, and was left out"

    def why_not_stated(self, text: str) -> str:
        """The same of a path that a file of the run states, relative to the run; also for one that
        is no such path.
        """
        if why := wrong_path(text):
            return why
        return self._why_not(f"{self.root}{os.sep}{os.path.normpath(text)}", folder=False)

    def require(self, path: Path) -> Path:
        """The path. Raises InputError for one that may not be read."""
        if why := self.why_not(path):
            raise InputError(f"{path} is not read: {why}", "copy the file itself into the run")
        return path

    def named(self, path: Path) -> str:
        """The path relative to the run."""
        return str(path.relative_to(self.root))

    def _folder(self, folder: str) -> str:
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return self._folders[folder]

    def _holds(self, real: str) -> bool:
        return real == self._real or real.startswith(self._real.rstrip(os.sep) + os.sep)


_OUT = "it is a link that leads out of the run directory, and was left out"
_NO_FOLDER = "no folder"
