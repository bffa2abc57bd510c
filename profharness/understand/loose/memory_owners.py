"""Who held the memory of one run or trace file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.measurement import measure
from profharness.analysis.memory.allocator import memory
from profharness.analysis.memory.owners import MemoryOwners, memory_owners
from profharness.understand.hotspots import load_for, passes_in_order

if TYPE_CHECKING:
    from profharness.understand.load import Loaded


def owners_of(path: Path, pass_name: str | None = None) -> tuple[MemoryOwners, Loaded]:
    """The owners in the pass asked for, else in the first with any, and what was read: with the
    modules of the model. Raises as `load` does, and UsageError for a pass that is not there.
    """
    loaded = load_for([path], "module")
    tables = (
        memory_owners(memory(measure(records)), name)
        for name, records in passes_in_order(loaded, pass_name)
    )
    first = next(tables)
    if first.rows:
        return first, loaded
    return next((table for table in tables if table.rows), first), loaded
