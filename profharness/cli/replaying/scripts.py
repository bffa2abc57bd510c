"""The scripts that `replay --write-scripts` leaves, one for each call."""

from __future__ import annotations

from pathlib import Path

from profharness.cli.replaying.rounds import Done
from profharness.errors import OutputExists
from profharness.report.replay.script import file_name, script
from profharness.rundir.shown.screen import mention


def check(folder: Path) -> None:
    """Raises OutputExists where the folder holds anything: nothing is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputExists(f"{folder} exists and is not empty", "name a new folder")


def write(folder: Path, done: Done) -> None:
    """A script for each row of the table, and a word on those that cannot be one."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (row, line) in enumerate(zip(done.table.rows, done.lines, strict=True), 1):
        name = file_name(number, row)
        try:
            text = script(done.table, row, line, name)
        except ValueError as error:
            mention(f"row {number} has no script: {error}")
            continue
        (folder / name).write_text(text, encoding="utf-8")
    mention(f"{folder}: a script for each row, to run with the workload's python")
