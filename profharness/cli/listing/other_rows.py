"""Rows of `hotspots` that are none of device or operator time: parts of kernels' code, lines of
Python and recurring sequences of kernels.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from profharness.cli.listing.forms import STACK_FORMS, TABLE_ROWS, By, Form, in_form, say
from profharness.errors import UsageError
from profharness.rundir.shown.screen import mention
from profharness.understand.operator_work import operator_input

if TYPE_CHECKING:
    from profharness.analysis.code.records import By as CodeBy
    from profharness.cli.hotspots import HotspotsLine

_OF_CODE = (
    "record samples of the program counter with --profile rocprofv3 --pc-sampling host_trap "
    "(or stochastic)"
)

_OF_MEMORY = "record allocations with --profile torch --profile-memory"
_OF_PYTHON = "record stacks of Python with --profile py-spy"


def code_rows(line: HotspotsLine) -> CodeBy | None:
    """Whether rows are parts of kernels' code: where they are asked for, or the files hold nothing
    else.
    """
    from profharness.understand.loose.code_files import holds_code

    if line.by is By.INSTRUCTION:
        return "instruction"
    if line.by is By.LINE or (line.by is None and all(map(holds_code, line.paths))):
        return "line"
    return None


def list_python(line: HotspotsLine) -> bool:
    """Print the lines or functions of Python where rows are these; whether that was done. Raises
    UsageError for options that mean nothing for them.
    """
    from profharness.understand.loose.python_lines import asked_lines

    found = asked_lines(line.paths, "" if line.by is None else line.by.value, line.pass_name)
    if found is None:
        return False
    from profharness.report.csv import host_csv
    from profharness.report.text.measured.python_lines import host_text

    refuse_rates(line, "rows of Python")
    say(found.problems)
    if found.table is None:
        mention(f"{line.paths[0]}: nothing to list by function; {_OF_PYTHON}")
        return True
    as_csv = partial(host_csv, raw=line.raw_csv)
    sys.stdout.write(in_form(found.table, line.shown, line.top, (host_text, as_csv)))
    return True


def refuse_rates(line: HotspotsLine, rows: str) -> None:
    """Raises UsageError for options that need rows with a time on a device or in an operator."""
    if line.samples or line.formulas:
        option = "--samples" if line.samples else "--formulas"
        raise UsageError(f"{option} is not for {rows}", "leave it out")
    if line.shown is Form.MD:
        raise UsageError(f"--format md is not for {rows}", "use --format csv or json")


def list_code(line: HotspotsLine, by: CodeBy, *, of_run: bool) -> None:
    """Print the lines or instructions of kernels, as `list_python` does."""
    from profharness.report.csv import code_csv
    from profharness.report.tables.code_spots import code_text
    from profharness.understand import code_spots

    refuse_rates(line, f"rows by {by}")
    if line.pass_name is not None and not of_run:
        raise UsageError(
            f"--pass {line.pass_name}: no such pass", "trace files have no passes: leave --pass out"
        )
    found = (
        code_spots.of_run(line.paths[0], by, line.pass_name)
        if of_run
        else code_spots.of_files(line.paths, by)
    )
    say(found.problems)
    if not found.table.rows:
        mention(f"{line.paths[0]}: nothing to list by {by}; {found.why or _OF_CODE}")
    as_csv = partial(code_csv, raw=line.raw_csv)
    sys.stdout.write(in_form(found.table, line.shown, line.top, (code_text, as_csv)))


def list_sequences(line: HotspotsLine) -> None:
    """Print recurring sequences of short kernels. Raises UsageError for options that mean nothing
    for them, and for several files: a sequence is one of one stream.
    """
    from profharness.report.sequences import tables
    from profharness.understand.loose.sequences import sequences_of

    if line.samples or line.shown in STACK_FORMS:
        option = "--samples" if line.samples else f"--format {line.shown.value}"
        raise UsageError(f"{option} is not for rows by sequence", "leave it out")
    if len(line.paths) > 1:
        raise UsageError("rows by sequence are of one run or file", "name one")
    given = operator_input(line.formulas, line.capture_trace)
    table, loaded = sequences_of(line.paths[0], line.pass_name, given)
    say(loaded.trace.problems)
    if line.shown is Form.MD:
        sys.stdout.write(tables.sequences_markdown(table, line.top or TABLE_ROWS))
        return
    as_csv = partial(tables.sequences_csv, raw=line.raw_csv)
    sys.stdout.write(in_form(table, line.shown, line.top, (tables.sequences_text, as_csv)))


def list_memory(line: HotspotsLine) -> None:
    """Print who held memory. Raises UsageError for options that mean nothing for it, and for
    several files, whose peaks are at other times.
    """
    from profharness.report.tables.memory import owners
    from profharness.understand.loose.memory_owners import owners_of

    if line.shown in STACK_FORMS or line.samples or line.formulas:
        option = "--samples" if line.samples else "--formulas"
        option = f"--format {line.shown.value}" if line.shown in STACK_FORMS else option
        raise UsageError(f"{option} is not for rows by memory", "leave it out")
    if len(line.paths) > 1:
        raise UsageError("rows by memory are of one run or file", "name one")
    table, loaded = owners_of(line.paths[0], line.pass_name)
    say(loaded.trace.problems)
    if not table.rows:
        mention(f"{line.paths[0]}: nothing to list by memory; {_OF_MEMORY}")
    if line.shown is Form.MD:
        sys.stdout.write(owners.owners_markdown(table, line.top or TABLE_ROWS))
        return
    as_csv = partial(owners.owners_csv, raw=line.raw_csv)
    sys.stdout.write(in_form(table, line.shown, line.top, (owners.owners_text, as_csv)))
