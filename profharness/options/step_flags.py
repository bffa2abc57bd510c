"""The option that makes ranges of the program into steps, shared by the commands that know
steps.
"""

from __future__ import annotations

from typing import Annotated

import typer

StepRange = Annotated[
    str,
    typer.Option(
        "--step-range",
        metavar="REGEX",
        help=(
            r"Ranges of the program (roctx, NVTX, record_function) whose whole name matches "
            r"are the steps: 'iteration (\d+)'. Of a run: instead of those that it recorded."
        ),
    ),
]
