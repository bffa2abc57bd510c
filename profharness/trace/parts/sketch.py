"""Few records that stand for many: one of each process, queue and domain, so that what identifies
records can travel alone. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from profharness.trace.columns.keys import Integers, pack
from profharness.trace.columns.table import NULL, Table, concat
from profharness.trace.merge import Places, place_tables
from profharness.trace.model import (
    Allocations,
    Counters,
    HostSamples,
    Marks,
    Ops,
    Requests,
    Samples,
    Strings,
    Trace,
)

TableT = TypeVar("TableT", bound=Table)
_IDENTIFYING = ("host", "domain")


def sketch(trace: Trace) -> Trace:
    """The trace's sources, devices and streams, with the first record of each kind of device work
    and of each domain of calls.

    Its strings are those that these records need. Names, points and operators are left out.
    """
    strings = Strings()
    kernels, copies, api = trace.kernels, trace.copies, trace.api
    few_kernels = _first(
        kernels,
        (
            kernels.source,
            kernels.host,
            kernels.rank,
            kernels.pid,
            kernels.device,
            kernels.stream,
            kernels.queue,
        ),
    )
    few_copies = _first(
        copies, (copies.source, copies.host, copies.rank, copies.pid, copies.device, copies.stream)
    )
    few_calls = _first(api, (api.source, api.domain))

    return replace(
        trace,
        strings=strings,
        kernels=_recoded(few_kernels, trace.strings, strings),
        copies=_recoded(few_copies, trace.strings, strings),
        api=_recoded(few_calls, trace.strings, strings),
        ops=Ops.empty(),
        marks=Marks.empty(),
        samples=Samples.empty(),
        counters=Counters.empty(),
        requests=Requests.empty(),
        host_samples=HostSamples.empty(),
        allocations=Allocations.empty(),
        statistics=(),
        tool_metrics=(),
    )


def _recoded(table: TableT, before: Strings, after: Strings) -> TableT:
    """The table with codes of `after` for what identifies records, and without other texts and
    operators.
    """
    changed: dict[str, Any] = {}
    for column in fields(table):
        if column.name in _IDENTIFYING:
            changed[column.name] = [
                after.code(before[code]) if code >= 0 else code
                for code in getattr(table, column.name).tolist()
            ]
        elif column.metadata["unit"] == "string" or column.metadata.get("of") == "ops":
            changed[column.name] = NULL
    return table.with_columns(**changed)


def placed(trace: Trace, places: Places, pools: Trace) -> Trace:
    """A part among the pools that were joined from sketches; its codes are of `pools.strings`
    already.
    """
    return replace(
        trace,
        sources=pools.sources,
        devices=pools.devices,
        streams=pools.streams,
        strings=pools.strings,
        # each name maps to its own kind of table
        **place_tables(trace, places),  # type: ignore[arg-type]  # kinds by name
    )


def concat_parts(parts: Sequence[Trace]) -> Trace:
    """Parts that were `placed` among the same pools as one: rows in the order of the parts,
    references to rows shifted.
    """
    if len(parts) == 1:
        return parts[0]
    tables: dict[str, Any] = {}
    for name, _ in parts[0].tables():
        moved, ops, kernels = [], 0, 0
        for part in parts:
            moved.append(_shifted(getattr(part, name), ops, kernels))
            ops, kernels = ops + len(part.ops), kernels + len(part.kernels)
        tables[name] = concat(moved)
    return replace(parts[0], **tables)


def _shifted(table: Table, ops: int, kernels: int) -> Table:
    """The table among the rows before it: its positions of operators and kernels moved by these."""
    changed: dict[str, Any] = {}
    for column in fields(table):
        by = ops if column.metadata.get("of") == "ops" else 0
        if isinstance(table, Counters) and column.name == "kernel":
            by = kernels
        if by:
            values = getattr(table, column.name)
            changed[column.name] = np.where(values == NULL, NULL, values + by)
    return table.with_columns(**changed) if changed else table


def _first(table: TableT, columns: Sequence[Integers]) -> TableT:
    if not len(table):
        return table
    return table.take(np.sort(np.unique(pack(columns), return_index=True)[1]))
