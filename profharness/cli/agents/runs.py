"""The runs and trace files that an agent can ask for."""

from __future__ import annotations

from pathlib import Path

from profharness.cli.agents.limits import MOST_ROWS
from profharness.cli.agents.records import ListedRun, RunList
from profharness.cli.agents.roots import Roots
from profharness.errors import InputError
from profharness.rundir.foreign.listing import read_listed, runs_below
from profharness.rundir.harness_process import state_of

_OUTPUT = "traces"  # where `profharness run` puts its runs


def list_runs(roots: Roots, folder: str = "") -> RunList:
    """The runs and trace files directly in a folder; without one those of each root and of the
    folder `traces` in it. Raises InputError for a folder that cannot be read.
    """
    from profharness.readers import readable_in

    folders = _folders(roots, folder)
    try:
        runs = [run for place in folders for run in runs_below(place)]
        files = [
            str(place / name)
            for place in folders
            if place not in runs
            for name in readable_in(place)
        ]
    except OSError as error:
        raise InputError(
            f"{folder or folders[0]} cannot be read: {error.strerror or error}",
            "check its permissions",
        ) from error
    return RunList(
        folders=tuple(map(str, folders)),
        runs=tuple(map(_listed, runs[-MOST_ROWS:])),
        runs_left_out=max(len(runs) - MOST_ROWS, 0),
        trace_files=tuple(files[:MOST_ROWS]),
        trace_files_left_out=max(len(files) - MOST_ROWS, 0),
    )


def _folders(roots: Roots, folder: str) -> list[Path]:
    if folder:
        place = roots.find(folder)
        if not place.is_dir():
            raise InputError(f"{folder} is a file", "name a folder, or ask for its answer")
        return [place]
    inner = [(root / _OUTPUT).resolve() for root in roots.folders]
    return list(
        dict.fromkeys(
            place
            for root, output in zip(roots.folders, inner, strict=True)
            for place in (root, output)
            if place.is_dir() and any(place.is_relative_to(one) for one in roots.folders)
        )
    )


def _listed(root: Path) -> ListedRun:
    try:
        run = read_listed(root)
    except InputError as error:
        return ListedRun(path=str(root), state="damaged", note=error.message)
    return ListedRun(
        path=str(root),
        state=state_of(run),
        created=run.created,
        # a point that several passes or repeats measured counts once
        points=len({point.id for point in run.points}),
        layers=tuple(layer.name for layer in run.layers[:20]) or ("bare",),
    )
