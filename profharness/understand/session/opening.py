"""How a run and trace files are opened in Python."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from profharness.errors import InputError, UsageError
from profharness.rundir.foreign.newest import newest_runs, output_folder
from profharness.rundir.paths import MANIFEST
from profharness.understand.load import check_paths, no_run
from profharness.understand.loose.scans import is_scan
from profharness.understand.operator_work import operator_input
from profharness.understand.session.recording import Recording, Run
from profharness.understand.session.scan import Scan

OnePath = str | PathLike[str]


def open_run(path: OnePath | None = None) -> Run:
    """The run in this directory; without a path the newest one below the folder that `ls` lists
    ($PROFHARNESS_OUTPUT, or traces).

    Raises InputError where there is none, and for a file: `profharness.read` takes those.
    """
    if path is None:
        return Run((_newest(),))
    root = Path(path)
    if root.is_file():
        raise InputError(
            f"{root} is a file, and not a run directory",
            f"read it by profharness.read({str(root)!r})",
        )
    check_paths([root])
    if not (root / MANIFEST).is_file():
        raise no_run(root, files="read its files by profharness.read: {}")
    return Run((root,))


def read(
    *paths: OnePath,
    formulas: OnePath | tuple[OnePath, ...] = (),
    capture_trace: OnePath | tuple[OnePath, ...] = (),
) -> Recording:
    """Trace files of any format that `metrics` takes; several are ranks of one job. The CSV of a
    scan gives a `Scan`. `formulas` and `capture_trace` are files for the options of the same names.

    Raises UsageError for a run directory (`profharness.open` takes those) and for a file that is
    named twice, InputError for one that does not exist.
    """
    named = listed(paths)
    check_paths(named)
    for one in named:
        if (one / MANIFEST).is_file():
            raise UsageError(f"{one} is a run", f"open it by profharness.open({str(one)!r})")
    if is_scan(named):
        return Scan(named)
    return Recording(named, operator_input(listed(formulas), listed(capture_trace)))


def opened(
    paths: tuple[Path, ...], formulas: tuple[Path, ...] = (), captures: tuple[Path, ...] = ()
) -> Recording:
    """Whatever the paths are, one run or files, as the commands take them. Raises as `read`."""
    check_paths(paths)
    given = operator_input(formulas, captures)
    if len(paths) == 1 and (paths[0] / MANIFEST).is_file():
        return Run(paths, given)
    return Recording(paths, given)


def listed(paths: OnePath | tuple[OnePath, ...] | list[OnePath]) -> tuple[Path, ...]:
    """One path or several as a tuple."""
    several = (paths,) if isinstance(paths, str | PathLike) else tuple(paths)
    return tuple(Path(path) for path in several)


def _newest() -> Path:
    """The run that was made last; damaged ones do not count. Raises InputError for none."""
    base = output_folder()
    made = newest_runs(base)
    if not made:
        raise InputError(
            f"there is no run below {base}",
            "make one by profharness.run, or name a run directory",
        )
    return made[0]
