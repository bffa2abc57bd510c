"""Records of rocprofv3's JSON as columns of numbers."""

from __future__ import annotations

from profharness.readers.rocprofv3.json_records import DispatchInfo
from profharness.trace.columns.build import Growing
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64


def taken(rows: Growing) -> dict[str, I64]:
    """The columns of dispatches that have grown so far, by name; the rows start anew."""
    return {name: rows.take(name) for name in DISPATCH}


def launch_columns(launches: list[DispatchInfo]) -> dict[str, list[int] | I64]:
    """How each dispatch was launched, a column per value; sizes are in work-items, memory in
    bytes.
    """
    sizes = [d.workgroup_size for d in launches]
    grids = [d.grid_size for d in launches]
    return {
        "kernel": [d.kernel_id for d in launches],
        "dispatch": [d.dispatch_id for d in launches],
        "agent": numbers([d.agent_id.handle for d in launches]),
        "queue": numbers([d.queue_id.handle for d in launches]),
        "lds": [d.group_segment_size for d in launches],
        "scratch": [d.private_segment_size for d in launches],
        "size_x": [t.x for t in sizes],
        "size_y": [t.y for t in sizes],
        "size_z": [t.z for t in sizes],
        "grid_x": [t.x for t in grids],
        "grid_y": [t.y for t in grids],
        "grid_z": [t.z for t in grids],
    }


def numbers(handles: list[int]) -> list[int]:
    """Handles as int64; larger ones stand for "none" in the tool's own code."""
    return (
        handles
        if max(handles, default=0) < LARGEST
        else [handle if handle < LARGEST else NULL for handle in handles]
    )


DISPATCH = (
    "start",
    "end",
    "kernel",
    "agent",
    "queue",
    "stream",
    "tid",
    "correlation",
    "dispatch",
    "grid_x",
    "grid_y",
    "grid_z",
    "size_x",
    "size_y",
    "size_z",
    "lds",
    "scratch",
)


LARGEST = 1 << 63
