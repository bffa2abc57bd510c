"""In which forms `hotspots` prints its tables, and what their rows can stand for."""

from __future__ import annotations

import shutil
import sys
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from profharness.findings import problem_text
from profharness.rundir.shown.screen import encoded, mention

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from profharness.analysis.code.records import CodeHotspots
    from profharness.analysis.host.line_records import LineTable
    from profharness.analysis.kernels.tally import Grouping
    from profharness.analysis.memory.owners import MemoryOwners
    from profharness.analysis.records import Hotspots
    from profharness.analysis.sequences.records import Sequences
    from profharness.trace.model import Problem

TableT = TypeVar("TableT", "Hotspots", "CodeHotspots", "LineTable", "Sequences", "MemoryOwners")
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
    MEMORY = "memory"


def grouping_of(by: By) -> Grouping:
    """The analysis's name of rows of records; lines, sequences and the like are none."""
    return cast("Grouping", by.value)


class Form(str, Enum):
    """How the table is printed."""

    TABLE = "table"
    CSV = "csv"
    MD = "md"
    JSON = "json"
    SPEEDSCOPE = "speedscope"
    FOLDED = "folded"


STACK_FORMS = (Form.SPEEDSCOPE, Form.FOLDED)


def say(problems: Sequence[Problem], *, notes: bool = False) -> None:
    """What the readers lost or repaired, errors first, on stderr; their notes are for `metrics`,
    unless asked for.
    """
    serious = [problem for problem in problems if notes or problem.severity != "info"]
    for problem in sorted(serious, key=lambda one: one.severity):
        mention(
            f"{problem.severity}: {problem_text(problem.source, problem.count, problem.message)}"
        )


def in_form(
    table: TableT,
    form: Form,
    top: int | None,
    texts: tuple[Callable[[TableT, int, int | None], str], Callable[[TableT], str]],
) -> str:
    """`texts` make a table for people and CSV of it."""
    import msgspec

    as_table, as_csv = texts
    if form is Form.TABLE:
        # a file or pipe gets full names: there is no width to fit into
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return as_table(table, top or TABLE_ROWS, width)
    cut = msgspec.structs.replace(table, rows=table.rows[:top])
    if form is Form.CSV:
        return as_csv(cut)
    return msgspec.json.format(encoded(cut), indent=2).decode() + "\n"
