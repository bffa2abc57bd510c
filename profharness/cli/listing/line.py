"""What a line of `hotspots` asks for, and how it says what readers lost."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from profharness.findings import problem_text
from profharness.options.declared import Limit, Option
from profharness.options.operator_work import OperatorOptions
from profharness.options.tables import RawCsv
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profharness.analysis.kernels.tally import Grouping
    from profharness.trace.model import Problem

TABLE_ROWS = 20


class By(str, Enum):
    """What rows stand for."""

    KERNEL = "kernel"
    OP = "op"
    SHAPE = "shape"
    MODULE = "module"
    RANGE = "range"
    STACK = "stack"
    CATEGORY = "category"
    CALL = "call"
    LINE = "line"
    FUNCTION = "function"
    INSTRUCTION = "instruction"
    SEQUENCE = "sequence"


def grouping_of(by: By) -> Grouping:
    """The analysis's name of rows of records; lines, instructions and sequences are none."""
    return cast("Grouping", by.value)


class Form(str, Enum):
    """How the table is printed."""

    TABLE = "table"
    CSV = "csv"
    MD = "md"
    JSON = "json"
    SPEEDSCOPE = "speedscope"
    FOLDED = "folded"


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
            "call, line or instruction of kernels, line or function of Python that py-spy sampled, "
            "or sequence of short kernels (default: kernel; op without device kernels; call with "
            "neither).",
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
            "For a run: also the mean of these telemetry metrics while each row ran, "
            "as power,clock.",
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


def say(problems: Sequence[Problem], *, notes: bool = False) -> None:
    """What the readers lost or repaired, errors first, on stderr; their notes are for `metrics`,
    unless asked for.
    """
    serious = [problem for problem in problems if notes or problem.severity != "info"]
    for problem in sorted(serious, key=lambda one: one.severity):
        mention(
            f"{problem.severity}: {problem_text(problem.source, problem.count, problem.message)}"
        )
