"""What the tasks of a job array made so far: the table of tasks, and the answer of their points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profharness.cli.running.answers import near, printed, show_made
from profharness.errors import OutputExists
from profharness.rundir.outputs import can_keep
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from profharness.understand.many.tasks import Tasks


def report_array(
    folder: Path,
    *,
    as_json: bool = False,
    quiet: bool = False,
    page: Path | None = None,
    force: bool = False,
) -> None:
    """Write the page and the table of results of all tasks so far, and print the answer. Raises
    InputError for a folder that is no array's, OutputExists for a page elsewhere that exists.
    """
    from profharness.report.tasks import tasks_json, tasks_table
    from profharness.report.text.listing import listing
    from profharness.understand.many.tasks import tasks_of

    if page is not None and page.exists() and not force:
        raise OutputExists(f"{page} exists", "name another with -o, or overwrite it with --force")
    tasks = tasks_of(folder)
    made = _written(folder, tasks, page)
    if as_json:
        from profharness.report.json import run_json

        printed(tasks_json(str(folder), tasks.rows, run_json(tasks.summary)), made or folder)
        return
    if quiet:
        return
    for line in listing(tasks_table(tasks.rows), heads=True):
        printed(f"{line}\n", made or folder)
    if tasks.summary.points:
        printed("\n", made or folder)
        show_made(tasks.summary, [(near(made), "")] if made else [], made or folder)
        return
    for found in tasks.summary.findings:
        mention(f"{found.severity}: {found.id}: {found.message}; {found.advice}")
    if made:
        printed(f"\n{near(made)}\n", made)


def _written(folder: Path, tasks: Tasks, page: Path | None) -> Path | None:
    """The page, where it can be written. Each file is put into its place when it is whole, so that
    two who report at once do no harm.
    """
    from profharness.rundir.paths import write_atomic

    if page is None and not can_keep(folder):
        return None
    place = page or folder / "report.html"
    if not tasks.summary.points:
        from profharness.report.sheets.index import render
        from profharness.understand.run_entries import entries

        roots = [Path(row.run.path) for row in tasks.rows if row.run is not None]
        write_atomic(place, render(folder.name, entries(roots, place.absolute().parent)).encode())
        return place
    from profharness.report.csv import results_csv
    from profharness.report.page import html

    if can_keep(folder):
        write_atomic(folder / "results.csv", results_csv(tasks.summary, *tasks.facts).encode())
    write_atomic(place, html.render(tasks.summary).encode())
    return place
