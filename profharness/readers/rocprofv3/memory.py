"""What a process held of each device's memory, from the allocations and releases that rocprofv3
records (`--memory-allocation-trace`).

Memory counts from the return of the call that allocated it to the call that released it: in that
order an address is never held twice, however calls of several threads overlap. A release states
neither device nor size; both are those of the allocation at its address.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.rocprofv3.agents import Places, Process
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Samples, Strings
from profharness.trace.sample_metrics import HSA_ALLOCATED

ALLOC, FREE, OTHER = 1, 0, NULL
"""What a record of memory did, as a number of its column."""

MEMORY_COLUMNS = ("start", "end", "agent", "bytes", "address")


def action_of(operation: str) -> int:
    """ALLOC, FREE or OTHER for `MEMORY_ALLOCATION_VMEM_ALLOCATE`, `ALLOC`, `FREE` and the like."""
    low = operation.lower()
    if low.endswith(("allocate", "alloc")) and not low.endswith("realloc"):
        return ALLOC
    return FREE if low.endswith("free") else OTHER


def address_of(text: str) -> int:
    """The number of an address, in decimal or as `0x7f00`; NULL where it is none."""
    try:
        address = int(text, 0)
    except ValueError:
        return NULL
    return address if 0 <= address < 1 << 63 else NULL


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """Records of one process: `action` (ALLOC, FREE or OTHER), times in ns, the number of the agent
    (NULL where not stated), bytes, and the address or handle.
    """

    start: I64
    end: I64
    action: I64
    agent: I64
    bytes: I64
    address: I64


@dataclass(frozen=True, eq=False)
class Held:
    """What the process held from each instant on, as samples. `unpaired` releases are of memory
    that no record allocated, `unsure` records neither allocate nor release, or lack what it takes.
    """

    samples: Samples
    unpaired: int
    unsure: int


def held(rows: MemoryRows, strings: Strings, places: Places, process: Process, source: int) -> Held:
    """The bytes held by device after each record that changed them; NULL stands for the host."""
    allocates = rows.action == ALLOC
    sound = np.where(allocates, (rows.bytes >= 0) & (rows.agent != NULL), rows.action == FREE) & (
        rows.address != NULL
    )
    null_release = (rows.action == FREE) & (rows.address == 0)  # allowed, and without effect
    used = np.flatnonzero(sound & ~null_release)
    device = places.device_positions(process, np.where(allocates, rows.agent, NULL))
    at = np.where(allocates, rows.end, rows.start)
    # of one instant what is released comes first
    order = used[np.lexsort((allocates[used], at[used]))]
    totals: dict[int, int] = {}
    open_: dict[int, tuple[int, int]] = {}
    written: list[tuple[int, int, int]] = []
    unpaired = 0
    for row in order.tolist():
        address = int(rows.address[row])
        place, size = open_.pop(address, (NULL, NULL))
        if size != NULL:
            totals[place] -= size
            written.append((int(at[row]), place, totals[place]))
        elif not allocates[row]:
            unpaired += 1
        if allocates[row]:
            place, size = int(device[row]), int(rows.bytes[row])
            open_[address] = (place, size)
            totals[place] = totals.get(place, 0) + size
            written.append((int(at[row]), place, totals[place]))
    columns = np.array(written, np.int64).reshape(-1, 3)
    samples = Samples.build(
        at_ns=columns[:, 0],
        until_ns=columns[:, 0],
        device=columns[:, 1],
        metric=strings.code(HSA_ALLOCATED) if written else NULL,
        value=columns[:, 2].astype(np.float64),
        source=source,
    )
    return Held(samples, unpaired, int((~sound).sum()))
