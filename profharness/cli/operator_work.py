"""What a line says about the work of operators, as the analysis takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.options.operator_work import OperatorOptions


def operator_input(line: OperatorOptions) -> OperatorInput:
    """The tables of formulas and the captures that a line names, read and checked before any trace
    is read. Raises InputError for a file that cannot be read, is no table of formulas or holds no
    capture.
    """
    from profharness.analysis.operators.engine import NO_INPUT, read_input

    if not line.formulas and not line.capture_trace:
        return NO_INPUT
    from profharness.understand.replays import read_captures

    given = read_input(line.formulas, line.capture_trace)
    read_captures(given.captures)
    return given
