"""`profharness export`: the checks before anything is read, and the form asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from profharness.errors import OutputExists
from profharness.rundir.outputs import make_folder, refuse_inputs, require_writable, whole_file
from profharness.understand.session.opening import opened
from profharness.understand.session.recording import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profharness.understand.session.recording import Recording

Form = Literal["parquet", "csv", "json", "xlsx", "openmetrics"]
_IN_A_FOLDER = ("parquet", "csv", "json")
_ANOTHER = "name another place with -o"


@dataclass(frozen=True)
class Exported:
    """What was made, and sentences on what is not in it."""

    paths: tuple[Path, ...]
    left_out: tuple[str, ...] = ()


def export(
    paths: Sequence[Path], place: Path, form: Form, *, force: bool = False, raw: bool = False
) -> Exported:
    """Write a run, or trace files together, to a folder (parquet, csv, json) or a file.

    Raises OutputExists for a file that is there and a folder that is not empty, unless `force`,
    UsageError where one cannot be written or would take the place of what is read, Unavailable for
    xlsx without openpyxl, and as `profharness.read` does.
    """
    recording = opened(tuple(paths))
    refuse_inputs(place, paths)
    _check(place, form, force=force)
    if form == "openmetrics":
        return _openmetrics(recording, paths, place)
    from profharness.understand.export.sheets import sheets_of

    if form == "xlsx":
        from profharness.understand.export.workbook import require_openpyxl, write_workbook

        require_openpyxl()
        return Exported((place,), tuple(write_workbook(sheets_of(recording), place)))
    from profharness.understand.export.folders import write_folder

    sheets = sheets_of(recording)
    for sheet in sheets:
        refuse_inputs(place / f"{sheet.name}.{form}", paths)
    make_folder(place, _ANOTHER)
    return Exported(tuple(write_folder(sheets, place, form, raw=raw)))


def _openmetrics(recording: Recording, paths: Sequence[Path], place: Path) -> Exported:
    """The metrics, and the telemetry as time series."""
    from profharness.understand.export.openmetrics import EOF, summary_text
    from profharness.understand.export.series import of_files, of_run, write_series

    end_ns = None
    if isinstance(recording, Run):
        manifest = recording.manifest
        sampled = of_run(paths[0], manifest)
        end_ns = max((reading.realtime_ns for reading in manifest.clocks), default=None)
    else:
        sampled = of_files(paths)
    with whole_file(place) as target, target.open("w", encoding="utf-8") as out:
        out.write(summary_text(recording.summary, end_ns))
        trouble = write_series(sampled, out)
        out.write(EOF)
    return Exported((place,), (*sampled.left_out, *trouble))


def _check(place: Path, form: Form, *, force: bool) -> None:
    if form in _IN_A_FOLDER:
        if place.is_dir():
            taken = any(place.iterdir())
        else:
            taken = place.exists()
            if taken:
                raise OutputExists(
                    f"{place} is a file, and {form} makes a folder of one file per table", _ANOTHER
                )
    else:
        require_writable(place, _ANOTHER)
        taken = place.exists()
    if taken and not force:
        kind = "is not empty" if form in _IN_A_FOLDER else "exists"
        raise OutputExists(f"{place} {kind}", f"{_ANOTHER}, or overwrite with --force")
