"""What a line says about the work of operators, as the analysis takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.options.operator_work import OperatorOptions


def operator_input(line: OperatorOptions) -> OperatorInput:
    """The tables of formulas that a line names, read and checked before any trace is read. Raises
    InputError for a file that cannot be read or is no table of formulas.
    """
    from profharness.analysis.operators.engine import NO_INPUT, read_input

    return read_input(line.formulas) if line.formulas else NO_INPUT
