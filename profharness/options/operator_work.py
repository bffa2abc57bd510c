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


CaptureTraces = Annotated[
    tuple[Path, ...],
    Option(
        "A trace in which a graph was captured that the trace replays: the replays' kernels "
        "get the operators of their capture (docs/metrics.md#graph-replays). Repeatable: one "
        "per captured batch size.",
        metavar="FILE",
    ),
]


class OperatorOptions(ManyFiles, frozen=True, kw_only=True):
    """Formulas of operators that our own table lacks, or has otherwise, and what was captured into
    graphs.
    """

    formulas: Formulas = ()
    capture_trace: CaptureTraces = ()
