"""`profharness compare`: two runs point by point, with noise bounds; `--fail-on` makes it a
gate.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from profharness.cli.parsing.forms import FORM_HELP, JSON_HELP, Form


def compare(
    run_a: Annotated[
        Path,
        typer.Argument(help="The run to compare with, or a trace file.", metavar="RUN_A|FILE_A"),
    ],
    run_b: Annotated[
        Path,
        typer.Argument(help="The run that changed, or its trace file.", metavar="RUN_B|FILE_B"),
    ],
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 when a significant change meets this, such as 'throughput<-5%'.",
            metavar="EXPR",
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help=FORM_HELP)] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Compare two runs (trace files, CSVs of scans), with noise bounds; usable as a CI gate."""
    from profharness.analysis.compare.gate import breaches, parse
    from profharness.analysis.compare.runs import compare as compared
    from profharness.report.json import comparison_json
    from profharness.report.md.comparison import comparison_markdown
    from profharness.report.text.comparison import comparison_text
    from profharness.understand.loose.sides import read_side

    conditions = () if fail_on is None else parse(fail_on)
    comparison = compared(read_side(run_a).summary, read_side(run_b).summary)
    found = breaches(comparison, conditions)
    text = {
        Form.TABLE: comparison_text,
        Form.MD: comparison_markdown,
        Form.JSON: comparison_json,
    }[Form.JSON if json else form]
    sys.stdout.write(text(comparison, found))
    if found:
        raise typer.Exit(1)
