"""Allocations and scratch memory as rocprofv3's CSV and JSON files hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.rocprofv3_program import Allocation, Program

ALLOCATIONS = (
    "Kind",
    "Operation",
    "Agent_Id",
    "Allocation_Size",
    "Address",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
)
SCRATCH = (
    "Kind",
    "Operation",
    "Agent_Id",
    "Queue_Id",
    "Thread_Id",
    "Alloc_Flags",
    "Start_Timestamp",
    "End_Timestamp",
)
Timed = Callable[[str, str, int, int, int, int], dict[str, Any]]


def memory_tables(
    program: Program, agent: Callable[[int], object]
) -> dict[str, list[list[object]]]:
    """The two CSV tables with their headers, by the end of their names. `agent` spells a number."""
    tables: dict[str, list[list[object]]] = {
        "memory_allocation_trace": [list(ALLOCATIONS)],
        "scratch_memory_trace": [list(SCRATCH)],
    }
    for a in program.allocations:
        if a.level == "SCRATCH":
            tables["scratch_memory_trace"].append(
                ["SCRATCH_MEMORY", a.operation, agent(a.agent), 16, a.tid, 0, a.start, a.end]
            )
            continue
        takes = a.kind == "ALLOC"
        tables["memory_allocation_trace"].append(
            [
                "MEMORY_ALLOCATION",
                a.operation,
                agent(a.agent) if takes else "",
                a.bytes if takes else 0,
                f"{a.address:#x}",
                a.correlation,
                a.start,
                a.end,
            ]
        )
    return tables


def memory_records(
    program: Program, handles: Mapping[int, int], timed: Timed
) -> dict[str, list[dict[str, Any]]]:
    """The two lists of the JSON file. `timed` makes what all records have."""

    def record(a: Allocation, kind: str) -> dict[str, Any]:
        takes = a.kind == "ALLOC"
        return {
            **timed(kind, a.operation, a.start, a.end, a.correlation, a.tid),
            "agent_id": {"handle": handles[a.agent] if takes else 0},
            "allocation_size": a.bytes if takes else 0,
            **({} if a.level == "SCRATCH" else {"address": f"{a.address:#x}"}),
        }

    scratch = [a for a in program.allocations if a.level == "SCRATCH"]
    others = [a for a in program.allocations if a.level != "SCRATCH"]
    return {
        "memory_allocation": [record(a, "MEMORY_ALLOCATION") for a in others],
        "scratch_memory": [record(a, "SCRATCH_MEMORY") for a in scratch],
    }
