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
    depth: Annotated[
        int,
        typer.Option(
            "--depth",
            min=1,
            max=20,
            help="Levels of the tree of operators that are printed where the time differs.",
            metavar="N",
        ),
    ] = 3,
    form: Annotated[Form, typer.Option("--format", help=FORM_HELP)] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Compare two runs (trace files, CSVs of scans), with noise bounds; usable as a CI gate."""
    from profharness.analysis.compare.gate import breaches, parse
    from profharness.report.json import comparison_json
    from profharness.report.md.comparison import comparison_markdown
    from profharness.report.text.comparison import comparison_text
    from profharness.understand.loose.sides import compare_sides, read_side

    conditions = () if fail_on is None else parse(fail_on)
    comparison = compare_sides(read_side(run_a), read_side(run_b))
    found = breaches(comparison, conditions)
    chosen = Form.JSON if json else form
    if chosen is Form.JSON:
        text = comparison_json(comparison, found)
    else:
        print_as = comparison_markdown if chosen is Form.MD else comparison_text
        text = print_as(comparison, found, depth)
    sys.stdout.write(text)
    if found:
        raise typer.Exit(1)
