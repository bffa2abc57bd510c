"""Options of the commands that show what operators have to do: what a user gives so that more of
it is known (docs/metrics.md#operator-work).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from profharness.options.declared import Option
from profharness.options.many_files import ManyFiles

Formulas = Annotated[
    tuple[Path, ...],
    Option(
        "A TOML table of formulas for the work of operators (docs/formulas.md). Repeatable: "
        "of several entries for one name the last one counts.",
        metavar="FILE",
    ),
]


class OperatorOptions(ManyFiles, frozen=True, kw_only=True):
    """Formulas of operators that our own table lacks, or has otherwise."""

    formulas: Formulas = ()
    # `capture_trace` (--capture-trace FILE, repeatable) belongs here; `cli.operator_work` hands its
    # paths down as OperatorInput.captures
