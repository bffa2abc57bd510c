"""The option that makes ranges of the program into steps, shared by the commands that know
steps.
"""

from __future__ import annotations

from typing import Annotated

from profharness.options.declared import SELECTION, Option

StepRange = Annotated[
    str,
    Option(
        r"Ranges of the program (roctx, NVTX, record_function) whose whole name matches are the "
        r"steps: 'iteration (\d+)'. For a run, they replace the steps that it recorded.",
        SELECTION,
        metavar="REGEX",
    ),
]
