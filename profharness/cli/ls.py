"""`profharness ls`: the runs below a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from profharness.cli.parsing.forms import FORM_HELP, JSON_HELP, Form
from profharness.errors import InputError
from profharness.launchers import describe_exit
from profharness.report.tables.runs import runs_table
from profharness.report.text.listing import listing
from profharness.rundir.foreign.listed_rows import RunList, run_row
from profharness.rundir.foreign.listing import runs_below
from profharness.rundir.jobs.arrays import is_array, tasks_in
from profharness.rundir.shown.screen import encoded, mention


def ls(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to look (default: traces, or $PROFHARNESS_OUTPUT).")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help=FORM_HELP)] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """List runs, oldest first: state, start, points, layers, path, what ran. A command that failed
    shows how it ended; `killed` is a run whose profharness process ended before it could record an
    end. In the folder of a job array it also names the tasks that are missing.
    """
    base = folder or Path(os.environ.get("PROFHARNESS_OUTPUT", "traces"))
    rows = tuple(run_row(root) for root in _found(base))
    if is_array(base):
        from profharness.understand.many.tasks import missing

        for found in missing(tasks_in(base)):
            mention(f"profharness: {found.message}")
    if json or form is Form.JSON:
        import msgspec

        sys.stdout.write(msgspec.json.format(encoded(RunList(runs=rows)), indent=2).decode() + "\n")
        return
    if not rows:
        where = f"no runs below {base}" if base.is_dir() else f"there is no folder {base}"
        mention(f"{where}; make a run with `profharness run particlenet`")
        return
    table = runs_table(rows, describe_exit)
    if form is Form.MD:
        from profharness.report.md.tables import markdown

        sys.stdout.write(markdown(table))
        return
    for line in listing(table):
        typer.echo(line)


def _found(base: Path) -> list[Path]:
    """The runs below a folder. Raises InputError where it cannot be looked into."""
    try:
        return runs_below(base) if base.is_dir() else []
    except OSError as error:
        raise InputError(
            f"{base} cannot be read: {error.strerror or error}", "check its permissions"
        ) from error
