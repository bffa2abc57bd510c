"""One execution of a command, as the manifest holds it."""

from __future__ import annotations

from typing import Literal

import msgspec

RateUnit = Literal["items", "steps", "runs", "figures"]
"""What a rate of an execution counts: items or steps that the script marks, executions by their
wall time, or whatever the figures count that its output gives.
"""


class ExecutionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One execution of a command in a scan: its wall time, and its rate per second of `unit`.

    `steps` were marked, of which the first `dropped` were too slow to count; `figures` numbers were
    found in its output. `values` are figures that the script gave by name.
    """

    wall_ns: int
    rate: float
    unit: RateUnit
    exit_status: int = 0
    steps: int = 0
    dropped: int = 0
    items: int = 0
    figures: int = 0
    values: dict[str, float] = {}
