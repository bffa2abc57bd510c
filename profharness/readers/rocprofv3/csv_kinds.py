"""Which of rocprofv3's tables a CSV file holds, by its columns, and which of these columns are read
as what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from profharness.readers.bytes import arrow_csv

Kind = Literal["kernel", "counter", "call", "copy", "agent", "stats", "memory", "sample"]

# the columns that tell a table from all others, of this tool and of its predecessors; the first
# that fits counts
_NEEDED: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("counter", ("dispatch_id", "agent_id", "kernel_name", "counter_name", "counter_value")),
    ("kernel", ("agent_id", "kernel_name", "correlation_id", "start_timestamp", "end_timestamp")),
    ("call", ("domain", "function", "thread_id", "start_timestamp", "end_timestamp")),
    (
        "copy",
        (
            "direction",
            "source_agent_id",
            "destination_agent_id",
            "start_timestamp",
            "end_timestamp",
        ),
    ),
    ("agent", ("node_id", "agent_type", "cu_count")),
    ("stats", ("name", "calls", "totaldurationns", "minns", "maxns")),
    ("memory", ("kind", "operation", "start_timestamp", "end_timestamp")),
    ("sample", ("sample_timestamp", "exec_mask", "dispatch_id")),
)

_TIMES: dict[str, arrow_csv.Kind] = {"start_timestamp": "time", "end_timestamp": "time"}
_OF_DISPATCH: dict[str, arrow_csv.Kind] = {
    **_TIMES,
    "guid": "text",
    "agent_id": "text",
    "kernel_name": "text",
    **dict.fromkeys(
        (
            "queue_id",
            "stream_id",
            "thread_id",
            "dispatch_id",
            "correlation_id",
            "lds_block_size",
            "group_segment_size",
            "scratch_size",
            "private_segment_size",
            "vgpr_count",
            "accum_vgpr_count",
            "sgpr_count",
        ),
        "integer",
    ),
}
COLUMNS: Mapping[Kind, Mapping[str, arrow_csv.Kind]] = {
    "kernel": {
        **_OF_DISPATCH,
        **{f"{what}_size_{axis}": "integer" for what in ("workgroup", "grid") for axis in "xyz"},
    },
    "counter": {
        **_OF_DISPATCH,
        "process_id": "integer",
        "grid_size": "integer",
        "workgroup_size": "integer",
        "counter_name": "text",
        "counter_value": "figure",
    },
    "call": {
        **_TIMES,
        "guid": "text",
        "domain": "text",
        "function": "text",
        **dict.fromkeys(("process_id", "thread_id", "correlation_id"), "integer"),
    },
    "copy": {
        **_TIMES,
        "guid": "text",
        "direction": "text",
        "source_agent_id": "text",
        "destination_agent_id": "text",
        **dict.fromkeys(("stream_id", "correlation_id"), "integer"),
    },
    "memory": {
        **_TIMES,
        "guid": "text",
        "operation": "text",
        "agent_id": "text",
        "address": "text",
        **dict.fromkeys(("allocation_size", "thread_id", "queue_id"), "integer"),
    },
    "sample": {"dispatch_id": "integer"},
}


MAY_BE_EMPTY: Mapping[Kind, Collection[str]] = {
    "memory": frozenset({"agent_id", "address", "allocation_size", "queue_id"})
}
"""Columns that single records leave empty: a release states neither its device nor a size."""


def kind_of(header: Collection[str]) -> Kind | None:
    """The table that has these columns (lower-case); None for a file of another tool."""
    return next((kind for kind, needed in _NEEDED if set(needed) <= set(header)), None)
