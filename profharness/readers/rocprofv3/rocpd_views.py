"""Which columns of rocpd's views are read, and as what: our name of a column to the view's names of
it, of which the first that a file has counts.

Schema 4.1 renamed columns (`agent_log_index` became `agent_logical_index`), and 3.0.1 to 3.0.5
added some. What a file has is asked of its tables, never concluded from its version: programs that
write rocpd number it as they like.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from profharness.trace.columns.table import NULL
from profharness.trace.model import I64

BATCH_ROWS = 1 << 15

Columns = Mapping[str, tuple[str, ...]]

KERNEL: Columns = {
    "start": ("start",),
    "end": ("end",),
    "kernel": ("kernel_id",),
    "agent": ("agent_log_index", "agent_logical_index"),
    "queue": ("queue_id",),
    "stream": ("stream_id",),
    "tid": ("tid",),
    "correlation": ("stack_id",),
    "dispatch": ("dispatch_id",),
    "grid_x": ("grid_x",),
    "grid_y": ("grid_y",),
    "grid_z": ("grid_z",),
    "size_x": ("workgroup_x",),
    "size_y": ("workgroup_y",),
    "size_z": ("workgroup_z",),
    "lds": ("lds_size", "lds_block_size"),
    "scratch": ("scratch_size",),
}


COPY: Columns = {
    "start": ("start",),
    "end": ("end",),
    "bytes": ("size",),
    "source_agent": ("src_agent_log_index", "src_agent_logical_index"),
    "target_agent": ("dst_agent_log_index", "dst_agent_logical_index"),
    "stream": ("stream_id",),
    "correlation": ("stack_id",),
    "name": ("name",),
}


CALL: Columns = {
    "start": ("start",),
    "end": ("end",),
    "tid": ("tid",),
    "correlation": ("stack_id",),
    "name": ("name",),
    "domain": ("category",),
    "message": ("extdata",),
}


INSTANT: Columns = {**CALL, "start": ("timestamp",), "end": ("timestamp",)}


MEMORY: Columns = {
    "start": ("start",),
    "end": ("end",),
    "tid": ("tid",),
    "agent": ("agent_log_index", "agent_logical_index"),
    "bytes": ("size",),
    "address": ("address",),
    "name": ("type",),
    "domain": ("level",),
}


COUNTED: tuple[tuple[str, Columns], ...] = (
    (
        "counters_collection",
        {"dispatch": ("dispatch_id",), "counter": ("counter_name",), "value": ("value",)},
    ),
    (
        "kernel_pmc_events",
        {"dispatch": ("dispatch_id",), "counter": ("pmc_name",), "value": ("pmc_value", "value")},
    ),
)
"""The views of counter values by dispatch; the first that a file has is read."""


SYMBOL = (
    "id",
    "display_name",
    "kernel_name",
    "group_segment_size",
    "arch_vgpr_count",
    "accum_vgpr_count",
    "sgpr_count",
)
AGENT = (
    "logical_index",
    "absolute_index",
    "type_index",
    "type",
    "name",
    "generic_name",
    "product_name",
    "vendor_name",
    "extdata",
)


TEXTS = frozenset({"name", "domain", "message"})


def chosen(wanted: Columns, present: Collection[str]) -> dict[str, str]:
    """The view's column for each of ours that the view has."""
    return {
        ours: next(name for name in names if name in present)
        for ours, names in wanted.items()
        if any(name in present for name in names)
    }


def with_times(columns: dict[str, I64]) -> dict[str, I64]:
    """The rows that have a begin and an end."""
    timed = (columns["start"] != NULL) & (columns["end"] != NULL)
    return columns if timed.all() else {name: column[timed] for name, column in columns.items()}
