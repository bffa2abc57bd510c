"""Files that a user names so that more of the operators' work is known, as the analysis takes
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from profharness.analysis.operators.engine import OperatorInput


def operator_input(formulas: Sequence[Path], capture_trace: Sequence[Path]) -> OperatorInput:
    """These tables of formulas and traces of captures, read and checked before any other trace is
    read. Raises InputError for a file that cannot be read, is no table of formulas or holds no
    capture, and UsageError for a capture that is named twice.
    """
    from profharness.analysis.operators.engine import NO_INPUT, read_input

    if not formulas and not capture_trace:
        return NO_INPUT
    from profharness.understand.replays import read_captures

    given = read_input(tuple(formulas), tuple(capture_trace))
    read_captures(given.captures)
    return given
