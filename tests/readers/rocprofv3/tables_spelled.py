"""The tables of a trace with names, devices and streams spelled out, to compare traces that were
written in different forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import Trace

_LEFT_OUT = {"source", "op", "point", "rank"}


def spelled(
    trace: Trace, *, without: frozenset[str] = frozenset()
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each table in the order of their times. `without` names columns that the forms do not
    share.
    """
    return {
        name: sorted(_rows(trace, table, _LEFT_OUT | without), key=repr)
        for name, table in trace.tables()
        if len(table)
    }


def _rows(trace: Trace, table: Table, left_out: frozenset[str] | set[str]) -> list[tuple[Any, ...]]:
    columns = []
    for name, declared in table.__dataclass_fields__.items():
        values = getattr(table, name)
        if name in left_out:
            continue
        if declared.metadata["unit"] == "string":
            columns.append(trace.strings.decode(values))
        elif declared.metadata.get("of") == "devices":
            columns.append([trace.devices[i].index if i != NULL else None for i in values])
        elif declared.metadata.get("of") == "streams":
            columns.append(
                [
                    (trace.devices[trace.streams[i].device].index, trace.streams[i].name)
                    if i != NULL
                    else None
                    for i in values
                ]
            )
        elif name == "kernel":
            columns.append([int(trace.kernels.start_ns[i]) for i in values])
        else:
            columns.append(values.tolist())
    return list(zip(*columns, strict=True))


def totals(trace: Trace) -> dict[str, tuple[int, int]]:
    """Calls and total ns of kernels by name."""
    kernels = trace.kernels
    return {
        trace.strings[int(code)]: (
            int((kernels.name == code).sum()),
            int(kernels.dur_ns[kernels.name == code].sum()),
        )
        for code in np.unique(kernels.name)
    }
