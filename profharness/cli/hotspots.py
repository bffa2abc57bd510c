"""`profharness hotspots`: where device (or operator) time went, as a table, CSV or JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from profharness.cli.listing.forms import (
    STACK_FORMS,
    TABLE_ROWS,
    By,
    Form,
    grouping_of,
    in_form,
    say,
)
from profharness.cli.listing.other_rows import (
    code_rows,
    list_code,
    list_memory,
    list_python,
    list_sequences,
)
from profharness.errors import UsageError
from profharness.options.declared import Limit, Option
from profharness.options.operator_work import OperatorOptions
from profharness.options.tables import RawCsv
from profharness.rundir.shown.screen import mention
from profharness.understand.operator_work import operator_input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from profharness.analysis.kernels.tally import Grouping
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.analysis.records import Hotspots
    from profharness.findings import Finding
    from profharness.trace.model import Problem

REPLAYS = "graph-replays"
_RECORD = "a run records operators with --profile torch, kernels with rocprofv3 too"


class HotspotsLine(OperatorOptions, frozen=True, kw_only=True):
    """What a line of `hotspots` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option(
            "A run directory, or trace files: their records count together.",
            argument=True,
            metavar="RUN|FILE...",
        ),
    ]
    by: Annotated[
        By | None,
        Option(
            "Rows: kernel, op, shape (op by its inputs), module, range, stack, category, (host) "
            "call, line or instruction of kernels, line or function of Python that py-spy "
            "sampled, sequence of short kernels, or memory of operators and modules (default: "
            "kernel; op without device kernels; call with neither).",
        ),
    ] = None
    pass_name: Annotated[
        str | None,
        Option(
            "Pass of a run (default: the first one with kernels, or with rows of this kind).",
            names=("--pass",),
        ),
    ] = None
    top: Annotated[
        int | None,
        Option(
            f"Rows to print (default: {TABLE_ROWS} in a table, else all).", limit=Limit(least=1)
        ),
    ] = None
    form: Annotated[
        Form,
        Option(
            "table, csv, md or json; or speedscope or folded: stacks for viewers of flame graphs.",
            names=("--format",),
        ),
    ] = Form.TABLE
    json: Annotated[bool, Option("The same as --format json.")] = False
    ops: Annotated[
        bool,
        Option("Read the operators of trace files too: the one that launched each kernel."),
    ] = False
    raw_csv: RawCsv = False
    samples: Annotated[
        str,
        Option(
            "Also the mean of these telemetry metrics while each row ran, as power,clock: of a "
            "run, or of a file that holds such series.",
            metavar="LIST",
        ),
    ] = ""

    @property
    def grouping(self) -> Grouping | None:
        """What rows of records stand for; None leaves it to what the files hold."""
        return None if self.by is None else grouping_of(self.by)

    @property
    def shown(self) -> Form:
        """How the table is printed."""
        return Form.JSON if self.json else self.form


def hotspots(line: HotspotsLine) -> None:
    """Show where device (or operator) time went."""
    from profharness.understand.load import check_paths

    paths = list(line.paths)
    check_paths(paths)
    of_run = len(paths) == 1 and paths[0].is_dir()
    if line.by is By.SEQUENCE:
        list_sequences(line)
        return
    if line.by is By.MEMORY:
        list_memory(line)
        return
    if line.shown in STACK_FORMS:
        _write_stacks(line)
        return
    if list_python(line):
        return
    if by := code_rows(line):
        list_code(line, by, of_run=of_run)
        return
    given = operator_input(line.formulas, line.capture_trace)
    of_one = of_run or (len(paths) == 1 and bool(line.samples))
    found = _of_run(line, given) if of_one else _of_files(line, given)
    table = found.table
    recorded_by = _RECORDED_BY.get(By(table.by), "")
    # where nothing says what would record the rows, the readers' notes may
    say(found.problems, notes=not table.rows and not recorded_by)
    for item in found.findings:
        mention(f"{item.severity}: {item.message}")
    if not table.rows:
        # files of which no rows were asked for were looked through for any: once is enough
        others = _others(table, found.by) if of_run or line.by is not None else ""
        advice = recorded_by or others or _of_code(paths) or _RECORD
        mention(f"{paths[0]}: nothing to list by {table.by}; {advice}")
    sys.stdout.write(text_of(table, line.shown, line.top, raw_csv=line.raw_csv))


def _write_stacks(line: HotspotsLine) -> None:
    """Print the tree of time for a viewer. Raises UsageError for options that cut or join rows."""
    from profharness.report.pictures.stack_files import folded_text, speedscope_json
    from profharness.understand.stacks import stacks_of

    for option, given in (("--samples", line.samples), ("--top", line.top), ("--ops", line.ops)):
        if given:
            raise UsageError(f"{option} is not for --format {line.shown.value}", "leave it out")
    found = stacks_of(line.paths, line.grouping, line.pass_name)
    say(found.problems)
    if not found.tree.total_ns:
        advice = _RECORDED_BY.get(By(found.by), _RECORD)
        mention(f"{line.paths[0]}: nothing to write by {found.by}; {advice}")
    title = ", ".join(path.name or str(path) for path in line.paths[:3])
    sys.stdout.write(
        folded_text(found.tree) if line.shown is Form.FOLDED else speedscope_json(found.tree, title)
    )


@dataclass(frozen=True)
class _Found:
    """The table, what the readers lost or repaired, the table of the same records with rows of
    another kind, and what was found of graph replays.
    """

    table: Hotspots
    problems: Sequence[Problem]
    by: Callable[[By], Hotspots]
    findings: Sequence[Finding] = ()


def _of_run(line: HotspotsLine, given: OperatorInput) -> _Found:
    from profharness.understand.hotspots import hotspots_of, load_for, misfits_of, records_of
    from profharness.understand.replays import with_captures

    asked = load_for(list(line.paths), line.grouping)
    loaded = with_captures(asked, given.captures)
    table = hotspots_of(loaded, line.grouping, line.pass_name, line.samples, given)
    if line.by is not None and line.pass_name is None and table.rows:
        usual, _ = records_of(loaded)
        if table.pass_name != usual:
            mention(
                f"pass {usual} has no rows by {table.by}: these are of pass {table.pass_name}"
                " (--pass chooses)"
            )
    return _Found(
        table,
        loaded.trace.problems,
        lambda other: hotspots_of(loaded, grouping_of(other), line.pass_name),
        [
            *(item for item in loaded.findings if item.id.startswith(REPLAYS)),
            *misfits_of(loaded, table.pass_name, given),
        ],
    )


def _of_files(line: HotspotsLine, given: OperatorInput) -> _Found:
    """Raises UsageError for what only a run can answer."""
    from profharness.cli.sharing.many import workers_of
    from profharness.understand.many.tables import hotspots_of_files

    paths = list(line.paths)
    if line.samples:
        raise UsageError("--samples is for one run or file", "name one of them")
    if line.pass_name is not None:
        raise UsageError(
            f"--pass {line.pass_name}: no such pass", "trace files have no passes: leave --pass out"
        )
    workers = workers_of(line)
    of_files = hotspots_of_files(
        paths,
        line.grouping,
        ops=line.ops or bool(line.formulas),
        shapes=line.shown is not Form.TABLE,
        workers=workers,
        operator_input=given,
    )
    for one in of_files.unread:
        mention(f"error: {one.message}; the file is left out")
    return _Found(
        of_files.table,
        of_files.problems,
        lambda other: hotspots_of_files(paths, grouping_of(other), workers=workers).table,
        of_files.findings,
    )


_RECORDED_BY = {
    By.SHAPE: "record shapes with the operators (record_shapes=True of torch.profiler)",
    By.MODULE: "record them with --stacks",
    By.STACK: "record them with --stacks",
    By.RANGE: "name ranges in the program, with record_function, roctx or NVTX",
}
"""What makes a file hold such rows."""

_LISTED = {
    By.OP: "its operators are listed by --by op",
    By.CALL: "its host calls are listed by --by call",
}


def _of_code(paths: Sequence[Path]) -> str:
    from profharness.understand.loose.code_files import holds_code

    return "its code is listed by --by line" if all(map(holds_code, paths)) else ""


def _others(table: Hotspots, table_by: Callable[[By], Hotspots]) -> str:
    """Where an empty table's file holds other rows, the option that lists them."""
    return next(
        (says for by, says in _LISTED.items() if by.value != table.by and table_by(by).rows), ""
    )


def text_of(table: Hotspots, form: Form, top: int | None, *, raw_csv: bool = False) -> str:
    """The table in the form asked for, cut to `top` rows; totals and shares stay those of the whole
    table.
    """
    from profharness.report.csv import hotspots_csv
    from profharness.report.text.hotspots import plain_table

    if form is Form.MD:
        from profharness.report.md.hotspots import hotspots_markdown

        return hotspots_markdown(table, top or TABLE_ROWS)
    return in_form(table, form, top, (plain_table, partial(hotspots_csv, raw=raw_csv)))
