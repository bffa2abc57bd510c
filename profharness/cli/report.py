"""`profharness report`: a run's HTML report and its summary on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from profharness.options.declared import Option
from profharness.options.operator_work import CaptureTraces, Formulas
from profharness.options.steps import StepRange
from profharness.options.tables import RawCsv
from profharness.rundir.outputs import refuse_inputs


class ReportLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `report` asks for."""

    run: Annotated[Path, Option("Run directory.", argument=True, metavar="RUN")]
    output: Annotated[
        Path | None, Option("HTML file (default RUN/report.html).", names=("--output", "-o"))
    ] = None
    force: Annotated[bool, Option("Overwrite an --output that exists.")] = False
    step_range: StepRange = ""
    formulas: Formulas = ()
    capture_trace: CaptureTraces = ()
    raw_csv: RawCsv = False
    json: Annotated[bool, Option("Print the run as `run --json` does.")] = False


def report(line: ReportLine) -> None:
    """Write the HTML report of a run, and print its summary."""
    from profharness.cli.running.steps import printed, show
    from profharness.report.json import run_json
    from profharness.understand import report_run as understand
    from profharness.understand.operator_work import operator_input

    if line.output is not None:
        refuse_inputs(line.output, (line.run, *line.formulas, *line.capture_trace))
    given = operator_input(line.formulas, line.capture_trace)
    summary = understand.finish(
        line.run,
        outputs=understand.Outputs(line.output, line.force, line.raw_csv, line.json),
        step_range=line.step_range,
        operator_input=given,
    )
    if line.json:
        printed(run_json(summary).decode(), line.run / "summary.json")
    else:
        show(summary, line.run, line.output or line.run / "report.html")
