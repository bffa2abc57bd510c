"""`profharness report`: a run's HTML report and its summary on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.options.step_flags import StepRange


def report(
    run: Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file (default RUN/report.html).")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an --output that exists.")
    ] = False,
    step_range: StepRange = "",
    json: Annotated[
        bool, typer.Option("--json", help="Print the run as `run --json` does.")
    ] = False,
) -> None:
    """Write the HTML report of a run, and print its summary."""
    from profharness.cli.run_steps import printed, show
    from profharness.report.json import run_json
    from profharness.understand import report_run as understand

    summary = understand.finish(run, report=output, force=force, step_range=step_range)
    if json:
        printed(run_json(summary).decode(), run / "summary.json")
    else:
        show(summary, run, output or run / "report.html")
