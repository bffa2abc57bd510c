"""Records of memory in rocprofv3's JSON file: allocations, releases and scratch memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.readers.rocprofv3.agents import Process
from profharness.readers.rocprofv3.json_columns import LARGEST, numbers
from profharness.readers.rocprofv3.json_records import Handle, Memory
from profharness.readers.rocprofv3.memory import (
    MEMORY_COLUMNS,
    MemoryRows,
    action_of,
    address_of,
)
from profharness.readers.rocprofv3.tables import RocmTables
from profharness.trace.columns.build import Growing, per_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64

MEMORY_PARTS = ("memory_allocation", "scratch_memory")
OPERATIONS = 1 << 20
"""Kind and operation of a record stand in one number: kind times this, and operation."""
_COLUMNS = ("start", "end", "tid", "agent", "bytes", "address", "operation")


class JsonMemory:
    """The records of one process, while its file is read."""

    def __init__(self) -> None:
        self._rows = Growing(*_COLUMNS)

    def add(self, batch: Sequence[Memory]) -> None:
        """Add records of one kind."""
        self._rows.add(
            len(batch),
            start=[m.start_timestamp for m in batch],
            end=[m.end_timestamp for m in batch],
            tid=[m.thread_id for m in batch],
            agent=numbers([m.agent_id.handle or NULL for m in batch]),
            bytes=numbers([m.allocation_size for m in batch]),
            address=[_number(m.address) for m in batch],
            operation=[m.kind * OPERATIONS + m.operation for m in batch],
        )

    def taken(
        self, agents: Callable[[I64], I64], names: Callable[[I64], tuple[I64, I64]]
    ) -> MemoryColumns:
        """What was read, with agents by their numbers and operations by their names, as codes. The
        records are used up.
        """
        columns = {name: self._rows.take(name) for name in _COLUMNS}
        kind, name = names(columns.pop("operation"))
        agent = columns["agent"]
        columns["agent"] = np.where(agent == NULL, NULL, agents(agent))
        return MemoryColumns({**columns, "name": name}, kind)


@dataclass(frozen=True, eq=False)
class MemoryColumns:
    """Columns of records, and the code of each one's kind."""

    columns: dict[str, I64]
    kind: I64

    def add_to(self, tables: RocmTables, process: Process, source: int) -> Counter[str]:
        """Add memory and events; the answer is that of `RocmTables.add_memory`."""
        strings, columns = tables.strings, self.columns
        scratch = per_text(strings, self.kind, lambda text: "SCRATCH" in text.upper()) == 1
        events = {name: columns[name][scratch] for name in ("start", "end", "tid", "name")}
        tables.add_events(process, events, "scratch", source)
        action = per_text(strings, columns["name"], action_of)
        return tables.add_memory(
            process,
            MemoryRows(
                action=action[~scratch],
                **{name: columns[name][~scratch] for name in MEMORY_COLUMNS},
            ),
            source,
        )


def _number(address: int | str | Handle) -> int:
    if isinstance(address, str):
        return address_of(address)
    number = address.handle if isinstance(address, Handle) else address
    return number if 0 <= number < LARGEST else NULL
