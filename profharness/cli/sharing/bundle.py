"""`profharness bundle`: what a colleague needs of a run, without secrets, in one zip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.units import format_bytes

if TYPE_CHECKING:
    from profharness.rundir.paths import RunDir


def bundle(
    run: Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The zip (default: NAME.zip here)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a zip that exists.")] = False,
) -> None:
    """Put a run's page, merged trace, manifest and tables into one zip to send to a colleague.

    Values that look secret are removed from the copies, and the command lists what it removed. A
    file that it cannot search is left out. Names of hosts, users and folders stay. The run itself
    is not changed.
    """
    from profharness.cli.running.answers import near
    from profharness.cli.sharing.archives import Archive, pack
    from profharness.cli.sharing.places import require_free, stem_of
    from profharness.rundir.paths import RunDir

    opened = RunDir.open(run)
    name = run.resolve().name or stem_of(run)
    place = output or Path(f"{name}.zip")
    require_free(place, (run,), force=force)
    _with_products(opened)
    packed: Archive = pack(opened, name, place)
    for line in packed.lines():
        typer.echo(line)
    typer.echo(f"{near(place)}   {format_bytes(place.stat().st_size)}")
    typer.echo("open report.html; profharness view merged.pftrace")


def _with_products(run: RunDir) -> None:
    """The page and the trace, made where a run that was stopped has none. Raises UsageError where
    they can be made elsewhere only.
    """
    if run.report.is_file() and run.merged.is_file():
        return
    from profharness.errors import UsageError
    from profharness.rundir.outputs import can_keep
    from profharness.understand import report_run as understand

    if not can_keep(run.root):
        raise UsageError(
            f"{run.root} has no report or no merged trace, and cannot be written to",
            "copy the run to a place that can be written, and bundle the copy",
        )
    understand.finish(run.root)
