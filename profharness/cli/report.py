"""`profharness report`: the HTML report of a run or of any trace files, and its summary on the
terminal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from profharness.cli.sharing.forms import ReportForm, form_of
from profharness.cli.sharing.places import require_free
from profharness.errors import UsageError
from profharness.options.declared import Option
from profharness.options.operator_work import OperatorOptions
from profharness.options.steps import StepRange
from profharness.options.tables import RawCsv
from profharness.rundir.outputs import refuse_inputs
from profharness.rundir.paths import write_atomic


class ReportLine(OperatorOptions, frozen=True, kw_only=True):
    """What a line of `report` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option(
            "A run directory, the folder of a job array, trace files (several are ranks of one "
            "job), or a CSV of a scan.",
            argument=True,
            metavar="RUN|FILE...",
        ),
    ]
    output: Annotated[
        Path | None,
        Option(
            "Where to (default: RUN/report.html; of files NAME.report.html here).",
            names=("--output", "-o"),
        ),
    ] = None
    force: Annotated[bool, Option("Overwrite a page that exists.")] = False
    step_range: StepRange = ""
    raw_csv: RawCsv = False
    compare: Annotated[
        bool, Option("Take two runs or files, and show what changed from the first to the second.")
    ] = False
    form: Annotated[
        ReportForm | None,
        Option(
            "html is the whole page; md and pdf are one page; ipynb is a notebook (default: by the "
            "ending of --output, else html).",
            names=("--format",),
        ),
    ] = None
    opens: Annotated[bool, Option("Open the page in the browser.", names=("--open",))] = False
    json: Annotated[
        bool,
        Option("Print what `run --json` prints of a run, or `metrics --json` of files."),
    ] = False


def report(line: ReportLine) -> None:
    """Write the HTML report of a run or of trace files, and print its summary."""
    from profharness.rundir.jobs.arrays import is_array
    from profharness.rundir.paths import MANIFEST

    first = line.paths[0]
    if line.compare:
        _of_two(line)
    elif len(line.paths) == 1 and is_array(first):
        _of_array(line, first)
    elif len(line.paths) == 1 and (not first.exists() or (first / MANIFEST).is_file()):
        _of_run(line, first)
    else:
        _of_files(line)


def _of_run(line: ReportLine, root: Path) -> None:
    from profharness.cli.running.answers import printed, show
    from profharness.cli.sharing.browser import open_page
    from profharness.cli.sharing.forms import document, of_one, require_form
    from profharness.report.json import run_json
    from profharness.understand import report_run as understand
    from profharness.understand.operator_work import operator_input

    form = form_of(line.form, line.output)
    of_page = form is ReportForm.HTML
    page = line.output or root / f"report.{form.value}"
    require_form(form, (root,))
    if not of_page:
        require_free(page, (), force=line.force or line.output is None)
    if line.output is not None:
        refuse_inputs(line.output, (root, *line.formulas, *line.capture_trace))
    given = operator_input(line.formulas, line.capture_trace)
    summary = understand.finish(
        root,
        outputs=understand.Outputs(
            line.output if of_page else None, line.force, line.raw_csv, line.json or not of_page
        ),
        step_range=line.step_range,
        operator_input=given,
    )
    if not of_page:
        write_atomic(page, document(form, of_one(summary, (root,)), page))
    if line.json:
        printed(run_json(summary).decode(), root / "summary.json")
    else:
        show(summary, root, page)
    if line.opens and page.is_file():
        open_page(page)


def _of_array(line: ReportLine, folder: Path) -> None:
    from profharness.cli.running.task_answers import report_array

    form = form_of(line.form, line.output)
    if form is not ReportForm.HTML:
        raise UsageError(
            f"a report as {form.value} is of one run, and {folder} is of the tasks of an array",
            "name one of its runs, or ask for html",
        )
    report_array(folder, as_json=line.json, page=line.output, force=line.force)


def _of_two(line: ReportLine) -> None:
    from profharness.cli.sharing.of_files import Wanted
    from profharness.cli.sharing.of_two import report_two
    from profharness.understand.operator_work import operator_input

    report_two(
        line.paths,
        Wanted(line.output, form_of(line.form, line.output), line.force, line.json, line.opens),
        line.step_range,
        operator_input(line.formulas, line.capture_trace),
    )


def _of_files(line: ReportLine) -> None:
    from profharness.cli.sharing.many import workers_of
    from profharness.cli.sharing.of_files import Wanted, report_files
    from profharness.understand.operator_work import operator_input

    several = len(line.paths) > 1 or line.dask is not None
    report_files(
        line.paths,
        Wanted(line.output, form_of(line.form, line.output), line.force, line.json, line.opens),
        line.step_range,
        operator_input(line.formulas, line.capture_trace),
        workers_of(line) if several else None,
    )
