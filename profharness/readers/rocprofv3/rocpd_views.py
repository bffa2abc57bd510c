"""Which columns of rocpd's views are read, and as what: our name of a column to the view's."""

from __future__ import annotations

BATCH_ROWS = 1 << 15


KERNEL = {
    "start": "start",
    "end": "end",
    "kernel": "kernel_id",
    "agent": "agent_log_index",
    "queue": "queue_id",
    "stream": "stream_id",
    "tid": "tid",
    "correlation": "stack_id",
    "dispatch": "dispatch_id",
    "grid_x": "grid_x",
    "grid_y": "grid_y",
    "grid_z": "grid_z",
    "size_x": "workgroup_x",
    "size_y": "workgroup_y",
    "size_z": "workgroup_z",
    "lds": "lds_size",
    "scratch": "scratch_size",
}


COPY = {
    "start": "start",
    "end": "end",
    "bytes": "size",
    "source_agent": "src_agent_log_index",
    "target_agent": "dst_agent_log_index",
    "stream": "stream_id",
    "correlation": "stack_id",
    "name": "name",
}


CALL = {
    "start": "start",
    "end": "end",
    "tid": "tid",
    "correlation": "stack_id",
    "name": "name",
    "domain": "category",
    "message": "extdata",
}


INSTANT = {**CALL, "start": "timestamp", "end": "timestamp"}


TEXTS = frozenset({"name", "domain", "message"})
