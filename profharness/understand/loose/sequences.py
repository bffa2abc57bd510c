"""The recurring sequences of short kernels of one run or trace file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.sequences.records import Sequences
from profharness.analysis.sequences.table import sequences
from profharness.understand.device_use import yardstick_of
from profharness.understand.hotspots import load_for, passes_in_order
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.understand.load import Loaded


def sequences_of(
    path: Path, pass_name: str | None = None, operator_input: OperatorInput = NO_INPUT
) -> tuple[Sequences, Loaded]:
    """The sequences of the pass asked for, else of the first with any, and what was read. Raises as
    `load` does, and UsageError for a pass that is not there.
    """
    loaded = with_captures(load_for([path], None), operator_input.captures)
    yardstick = yardstick_of(loaded, None, operator_input)
    tables = (
        sequences(records, KernelFacts(records, yardstick).roofs, name)
        for name, records in passes_in_order(loaded, pass_name)
    )
    first = next(tables)
    if first.rows:
        return first, loaded
    return next((table for table in tables if table.rows), first), loaded
